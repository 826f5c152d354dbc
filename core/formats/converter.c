/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "converter-private.h"

#include <string.h>
#include <sys/stat.h>
#include <glib/gstdio.h>

#include "../error-private.h"

struct _RunnelConverter {
  GObject parent_instance;
  RunnelPackageType type;
  guint group;
  GArray *rules;               /* RunnelConverterRule */
  GHashTable *importance;      /* tensor → RunnelImportance */
  RunnelCalibration *calibration;
  RunnelDecisionHead *head;    /* nullable */
  gboolean attach_head;
};

G_DEFINE_FINAL_TYPE (RunnelConverter, runnel_converter, G_TYPE_OBJECT)

enum { PROP_0, PROP_TYPE, PROP_GROUP, PROP_ATTACH_HEAD, N_PROPERTIES };

static GParamSpec *properties[N_PROPERTIES];

GType
runnel_package_type_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { RUNNEL_PACKAGE_TYPE_AUTO, "RUNNEL_PACKAGE_TYPE_AUTO", "auto" },
    { RUNNEL_PACKAGE_TYPE_INT4, "RUNNEL_PACKAGE_TYPE_INT4", "int4" },
    { RUNNEL_PACKAGE_TYPE_INT8, "RUNNEL_PACKAGE_TYPE_INT8", "int8" },
    { RUNNEL_PACKAGE_TYPE_F16, "RUNNEL_PACKAGE_TYPE_F16", "f16" },
    { RUNNEL_PACKAGE_TYPE_SOURCE, "RUNNEL_PACKAGE_TYPE_SOURCE", "source" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type,
        g_enum_register_static ("RunnelPackageType", values));
  return type;
}

/* ---- The object ------------------------------------------------------ */

static void
clear_rule (gpointer data)
{
  g_pattern_spec_free (((RunnelConverterRule *) data)->pattern);
}

static void
free_importance (gpointer data)
{
  RunnelImportance *importance = data;

  g_free (importance->values);
  g_free (importance);
}

static void
runnel_converter_finalize (GObject *object)
{
  RunnelConverter *self = RUNNEL_CONVERTER (object);

  g_array_unref (self->rules);
  g_hash_table_unref (self->importance);
  g_clear_object (&self->calibration);
  g_clear_object (&self->head);
  G_OBJECT_CLASS (runnel_converter_parent_class)->finalize (object);
}

static void
runnel_converter_get_property (GObject *object, guint id, GValue *value,
                               GParamSpec *pspec)
{
  RunnelConverter *self = RUNNEL_CONVERTER (object);

  switch (id) {
    case PROP_TYPE:
      g_value_set_enum (value, self->type);
      break;
    case PROP_GROUP:
      g_value_set_uint (value, self->group);
      break;
    case PROP_ATTACH_HEAD:
      g_value_set_boolean (value, self->attach_head);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
}

static void
runnel_converter_set_property (GObject *object, guint id, const GValue *value,
                               GParamSpec *pspec)
{
  RunnelConverter *self = RUNNEL_CONVERTER (object);

  switch (id) {
    case PROP_TYPE:
      self->type = g_value_get_enum (value);
      break;
    case PROP_GROUP:
      self->group = g_value_get_uint (value);
      break;
    case PROP_ATTACH_HEAD:
      self->attach_head = g_value_get_boolean (value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
}

static void
runnel_converter_class_init (RunnelConverterClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->finalize = runnel_converter_finalize;
  object_class->get_property = runnel_converter_get_property;
  object_class->set_property = runnel_converter_set_property;

  /**
   * RunnelConverter:type:
   *
   * What becomes of matrices that no rule of runnel_converter_keep () is
   * about.
   *
   * Since: 0.1
   */
  properties[PROP_TYPE] = g_param_spec_enum ("type", "Type",
      "What becomes of matrices", RUNNEL_TYPE_PACKAGE_TYPE,
      RUNNEL_PACKAGE_TYPE_AUTO,
      G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS);
  /**
   * RunnelConverter:group:
   *
   * Columns that share a scale. 0: 64 where that loses nothing or the source
   * is quantised anew, else 32. 32: always 32. 64: the types INT4 and INT8
   * quantise anew what does not fit, while AUTO stays without loss.
   *
   * Since: 0.1
   */
  properties[PROP_GROUP] = g_param_spec_uint ("group", "Group",
      "Columns that share a scale: 32, 64, or 0 for as it fits", 0, 64, 0,
      G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS);
  /**
   * RunnelConverter:attach-head:
   *
   * Whether a decision head goes into the package: that of
   * runnel_converter_set_head (), or else the one that the model comes with.
   *
   * Since: 0.1
   */
  properties[PROP_ATTACH_HEAD] = g_param_spec_boolean ("attach-head",
      "Attach head", "Whether a decision head goes into the package", TRUE,
      G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties (object_class, N_PROPERTIES, properties);
}

static void
runnel_converter_init (RunnelConverter *self)
{
  self->attach_head = TRUE;
  self->rules = g_array_new (FALSE, FALSE, sizeof (RunnelConverterRule));
  g_array_set_clear_func (self->rules, clear_rule);
  self->importance = g_hash_table_new_full (g_str_hash, g_str_equal, g_free,
      free_importance);
}

/**
 * runnel_converter_new:
 *
 * A converter that loses nothing where the source allows it.
 *
 * Returns: (transfer full): the converter
 *
 * Since: 0.1
 */
RunnelConverter *
runnel_converter_new (void)
{
  return g_object_new (RUNNEL_TYPE_CONVERTER, NULL);
}

/**
 * runnel_converter_keep:
 * @self: a converter
 * @pattern: names of tensors, with `*` and `?`
 * @type: what becomes of them
 *
 * Makes an exception for the matrices whose GGUF name (`token_embd.weight`,
 * `blk.3.attn_q.weight`) fits @pattern. Of several that fit, the last one
 * counts.
 *
 * Since: 0.1
 */
void
runnel_converter_keep (RunnelConverter *self, const char *pattern,
                       RunnelPackageType type)
{
  RunnelConverterRule rule = { NULL, type };

  g_return_if_fail (RUNNEL_IS_CONVERTER (self));
  g_return_if_fail (pattern != NULL);

  rule.pattern = g_pattern_spec_new (pattern);
  g_array_append_val (self->rules, rule);
}

/**
 * runnel_converter_set_importance:
 * @self: a converter
 * @tensor: GGUF name of a matrix
 * @importance: (array length=n_columns): not negative; how much an error
 *   weighs in each column, such as the mean square of what it is multiplied
 *   by
 * @n_columns: columns of the matrix
 *
 * Says what matters in a matrix that will be quantised anew.
 *
 * Since: 0.1
 */
void
runnel_converter_set_importance (RunnelConverter *self, const char *tensor,
                                 const float *importance, gsize n_columns)
{
  RunnelImportance *kept;

  g_return_if_fail (RUNNEL_IS_CONVERTER (self));
  g_return_if_fail (tensor != NULL && importance != NULL);

  kept = g_new (RunnelImportance, 1);
  kept->values = g_memdup2 (importance, n_columns * sizeof (float));
  kept->n = n_columns;
  g_hash_table_replace (self->importance, g_strdup (tensor), kept);
}

/**
 * runnel_converter_set_calibration:
 * @self: a converter
 * @calibration: (nullable) (transfer none): what the model's matrices read
 *
 * Matrices that will be quantised anew are then rounded column by column, each
 * column's error made good by those behind it. Comes before what
 * runnel_converter_set_importance() said.
 *
 * Since: 0.1
 */
void
runnel_converter_set_calibration (RunnelConverter *self,
                                  RunnelCalibration *calibration)
{
  g_return_if_fail (RUNNEL_IS_CONVERTER (self));
  g_return_if_fail (calibration == NULL
      || RUNNEL_IS_CALIBRATION (calibration));

  g_set_object (&self->calibration, calibration);
}

/**
 * runnel_converter_set_head:
 * @self: a converter
 * @head: (nullable) (transfer none): what scores options; %NULL: the head that
 *   the model comes with, if there is one
 *
 * Says which decision head goes into the package. Its tensors stay floats,
 * whatever the type of matrices.
 *
 * Since: 0.1
 */
void
runnel_converter_set_head (RunnelConverter *self, RunnelDecisionHead *head)
{
  g_return_if_fail (RUNNEL_IS_CONVERTER (self));
  g_return_if_fail (head == NULL || RUNNEL_IS_DECISION_HEAD (head));

  g_set_object (&self->head, head);
}

/* ---- A conversion ---------------------------------------------------- */

#define fail(self, code, subject, ...) \
  (runnel_set_error_about ((self)->error, code, subject, __VA_ARGS__), FALSE)

gboolean
runnel_conversion_advance (RunnelConversion *self, gsize bytes)
{
  if (g_cancellable_is_cancelled (self->cancellable))
    return fail (self, RUNNEL_ERROR_CANCELLED,
        runnel_checkpoint_path (self->checkpoint),
        "the conversion was cancelled");
  self->done += bytes;
  if (self->progress != NULL)
    self->progress (MIN ((double) self->done / self->total, 1),
        self->user_data);
  return TRUE;
}

void
runnel_conversion_forget (RunnelConversion *self, RunnelMapping *mapping)
{
  if (runnel_mapping_is_file (mapping))
    return;
  g_hash_table_remove (self->files, mapping);
  runnel_mapping_release (mapping, 0, runnel_mapping_size (mapping));
}

RunnelTensorFile *
runnel_conversion_file (RunnelConversion *self, RunnelMapping *mapping)
{
  RunnelTensorFile *file = g_hash_table_lookup (self->files, mapping);

  if (file != NULL)
    return file;
  file = runnel_tensor_file_new (mapping, self->error);
  if (file != NULL)
    g_hash_table_insert (self->files, mapping, file);
  return file;
}

/* Nothing but a file of its own may be replaced, and no file of the source. */
static gboolean
check_output (RunnelConversion *self, const char *output)
{
  g_autoptr (GPtrArray) files = runnel_conversion_list_files (self);
  struct stat there, source;

  if (g_stat (output, &there) != 0)
    return TRUE;
  if (!S_ISREG (there.st_mode))
    return fail (self, RUNNEL_ERROR_INVALID_ARGUMENT, output,
        "is no file that could be replaced; name a new one");
  for (guint i = 0; i < files->len; i++)
    if (g_stat (files->pdata[i], &source) == 0 &&
        source.st_dev == there.st_dev && source.st_ino == there.st_ino)
      return fail (self, RUNNEL_ERROR_INVALID_ARGUMENT, output,
          "is what the package is made of ('%s'); name another output",
          (char *) files->pdata[i]);
  return TRUE;
}

/* Whether two tensors hold the same bytes. */
static gboolean
compare_tensors (RunnelConversion *self, const RunnelTensor *a,
                 const RunnelTensor *b, gboolean *ret_same)
{
  const gsize part = (gsize) 1 << 18;
  RunnelTensorFile *first = runnel_conversion_file (self, a->mapping);
  RunnelTensorFile *second = runnel_conversion_file (self, b->mapping);
  g_autofree guint8 *buffer = g_malloc (2 * part);

  *ret_same = a->type == b->type && a->bytes == b->bytes;
  for (gsize at = 0; *ret_same && at < a->bytes; at += part) {
    gsize n = MIN (part, a->bytes - at);

    if (first == NULL || second == NULL ||
        !runnel_conversion_advance (self, 0) ||
        !runnel_tensor_file_read (first, a->offset + at, buffer, n,
            self->error) ||
        !runnel_tensor_file_read (second, b->offset + at, buffer + part, n,
            self->error))
      return FALSE;
    *ret_same = memcmp (buffer, buffer + part, n) == 0;
  }
  return TRUE;
}

static gboolean
is_quantised_matrix (const RunnelTensor *tensor)
{
  return tensor->n_dims > 1 &&
      runnel_tensor_type_info (tensor->type)->block_elements > 1;
}

/* All but an output matrix that is the embedding once more. */
static gboolean
list_tensors (RunnelConversion *self)
{
  const RunnelTensor *embedding = runnel_checkpoint_tensor (self->checkpoint,
      "token_embd.weight");
  const RunnelTensor *output = runnel_checkpoint_tensor (self->checkpoint,
      "output.weight");
  gboolean same = FALSE;

  if (embedding != NULL && output != NULL &&
      !compare_tensors (self, embedding, output, &same))
    return FALSE;
  self->left_out = same ? output : NULL;
  self->is_float = TRUE;
  for (gsize i = 0; i < runnel_checkpoint_n_tensors (self->checkpoint); i++) {
    const RunnelTensor *tensor
        = runnel_checkpoint_nth_tensor (self->checkpoint, i);

    if (tensor == self->left_out || runnel_head_owns_tensor (tensor->name))
      continue;
    g_array_append_val (self->tensors, *tensor);
    self->total += tensor->bytes;
    self->is_float = self->is_float && !is_quantised_matrix (tensor);
  }
  for (guint i = 0; self->head_tensors && i < self->head_tensors->len; i++) {
    const RunnelTensor *tensor
        = &g_array_index (self->head_tensors, RunnelTensor, i);

    g_array_append_val (self->tensors, *tensor);
    self->total += tensor->bytes;
  }
  return TRUE;
}

/* The head that goes into the package, if there is one. */
static gboolean
find_head (RunnelConversion *self, RunnelDecisionHead *head)
{
  if (head != NULL)
    self->head = g_object_ref (head);
  else if (!runnel_decision_head_find (self->checkpoint, &self->head,
               self->error))
    return FALSE;
  if (self->head == NULL)
    return TRUE;
  self->head_tensors = runnel_decision_head_make_tensors (self->head);
  return runnel_decision_head_check_fit (self->head,
      runnel_checkpoint_hyperparameters (self->checkpoint),
      runnel_checkpoint_path (self->checkpoint), self->error);
}

static gboolean
write_tensors (RunnelConversion *self)
{
  for (gsize i = 0; i < runnel_checkpoint_n_tensors (self->checkpoint); i++) {
    const RunnelTensor *tensor
        = runnel_checkpoint_nth_tensor (self->checkpoint, i);

    if (tensor != self->left_out && !runnel_head_owns_tensor (tensor->name) &&
        !runnel_conversion_write_tensor (self, tensor,
            runnel_checkpoint_nth_rounding (self->checkpoint, i)))
      return FALSE;
  }
  for (guint i = 0; self->head_tensors && i < self->head_tensors->len; i++)
    if (!runnel_conversion_write_tensor (self,
            &g_array_index (self->head_tensors, RunnelTensor, i), NULL))
      return FALSE;
  return TRUE;
}

static gboolean
check_unchanged (RunnelConversion *self)
{
  GHashTableIter iter;
  gpointer file;

  g_hash_table_iter_init (&iter, self->files);
  while (g_hash_table_iter_next (&iter, NULL, &file))
    if (!runnel_tensor_file_is_unchanged (file, self->error))
      return FALSE;
  return TRUE;
}

static gboolean
write_package (RunnelConversion *self, const char *output, gsize *ret_size)
{
  g_autoptr (RunnelGgufWriter) metadata
      = runnel_package_writer_make_metadata ();

  if (!list_tensors (self) ||
      !runnel_conversion_write_metadata (self, metadata))
    return FALSE;
  self->writer = runnel_package_writer_new (output,
      g_steal_pointer (&metadata), (const RunnelTensor *) self->tensors->data,
      self->tensors->len, self->error);
  return self->writer != NULL && write_tensors (self) &&
      check_unchanged (self) && runnel_conversion_advance (self, 0) &&
      runnel_package_writer_finish (self->writer, ret_size, self->error);
}

static GVariant *
make_report (RunnelConversion *self, const char *output, gsize size)
{
  GVariantBuilder builder;

  g_variant_builder_init (&builder, G_VARIANT_TYPE_VARDICT);
  g_variant_builder_add (&builder, "{sv}", "output",
      g_variant_new_take_string (g_filename_display_name (output)));
  g_variant_builder_add (&builder, "{sv}", "bytes",
      g_variant_new_uint64 (size));
  g_variant_builder_add (&builder, "{sv}", "n_lossless",
      g_variant_new_uint32 (self->n_lossless));
  g_variant_builder_add (&builder, "{sv}", "n_tensors",
      g_variant_new_uint32 (self->tensors->len));
  g_variant_builder_add (&builder, "{sv}", "output_was_embedding",
      g_variant_new_boolean (self->left_out != NULL));
  g_variant_builder_add (&builder, "{sv}", "has_decision_head",
      g_variant_new_boolean (self->head != NULL));
  g_variant_builder_add (&builder, "{sv}", "tensors",
      g_variant_builder_end (self->report));
  return g_variant_ref_sink (g_variant_builder_end (&builder));
}

static void
clear_conversion (RunnelConversion *self)
{
  g_clear_pointer (&self->writer, runnel_package_writer_free);
  g_hash_table_unref (self->files);
  g_array_unref (self->tensors);
  g_clear_pointer (&self->head_tensors, g_array_unref);
  g_clear_object (&self->head);
  g_clear_pointer (&self->checkpoint, runnel_checkpoint_unref);
}

/**
 * runnel_converter_convert:
 * @self: a converter
 * @input: (type filename): a GGUF file, a Hugging Face folder, or a
 *   .safetensors file in one, an MNN package's folder, or a package
 * @output: (type filename): where the package goes; a file that is there is
 *   replaced when the package is whole
 * @progress: (nullable) (scope call): told how far it is
 * @user_data: for @progress
 * @cancellable: (nullable): stops it, and leaves nothing behind
 * @error: return location for a #GError
 *
 * Writes the package of a model, or of a DFlash draft. What is written is read
 * back and compared with the source. The report is a dictionary of output (s),
 * bytes (t), n_tensors, n_lossless (u each), output_was_embedding (b: an output
 * matrix that was the embedding once more was left out), has_decision_head (b),
 * and tensors (a(sssbdtt): name, type in the source, type in the package,
 * whether nothing was lost, the root of the squared error relative to the
 * squared weights, bytes in the source, bytes in the package). More may come.
 *
 * Returns: (transfer full): the report, of the type a{sv}, or %NULL with an
 *   error; then @output is as it was
 *
 * Since: 0.1
 */
GVariant *
runnel_converter_convert (RunnelConverter *self, const char *input,
                          const char *output, RunnelProgressFunc progress,
                          gpointer user_data, GCancellable *cancellable,
                          GError **error)
{
  RunnelConversion run = { .progress = progress, .user_data = user_data,
    .cancellable = cancellable, .error = error };
  GVariantBuilder report;
  GVariant *result = NULL;
  gsize size = 0;

  g_return_val_if_fail (RUNNEL_IS_CONVERTER (self), NULL);
  g_return_val_if_fail (input != NULL && output != NULL, NULL);
  g_return_val_if_fail (error == NULL || *error == NULL, NULL);

  if (self->group != 0 && self->group != 32 && self->group != 64) {
    g_set_error (error, RUNNEL_ERROR, RUNNEL_ERROR_INVALID_ARGUMENT,
        "groups of %u columns are not supported (32 and 64 are)", self->group);
    return NULL;
  }
  run.type = self->type;
  run.group = self->group;
  run.rules = self->rules;
  run.importance = self->importance;
  run.calibration = self->calibration;
  run.checkpoint = runnel_checkpoint_open (input, RUNNEL_LOAD_MODE_MAP, error);
  if (run.checkpoint == NULL)
    return NULL;
  run.files = g_hash_table_new_full (NULL, NULL, NULL,
      (GDestroyNotify) runnel_tensor_file_free);
  run.tensors = g_array_new (FALSE, FALSE, sizeof (RunnelTensor));
  run.report = &report;
  g_variant_builder_init (&report, G_VARIANT_TYPE ("a(sssbdtt)"));
  if ((!self->attach_head || find_head (&run, self->head)) &&
      check_output (&run, output) && write_package (&run, output, &size))
    result = make_report (&run, output, size);
  else
    g_variant_builder_clear (&report);
  clear_conversion (&run);
  return result;
}

/* ---- In a thread ----------------------------------------------------- */

typedef struct {
  char *input, *output;
} Paths;

static void
free_paths (gpointer data)
{
  Paths *paths = data;

  g_free (paths->input);
  g_free (paths->output);
  g_free (paths);
}

static void
convert_in_thread (GTask *task, gpointer source, gpointer data,
                   GCancellable *cancellable)
{
  Paths *paths = data;
  GError *error = NULL;
  GVariant *report = runnel_converter_convert (source, paths->input,
      paths->output, NULL, NULL, cancellable, &error);

  if (report != NULL)
    g_task_return_pointer (task, report, (GDestroyNotify) g_variant_unref);
  else
    g_task_return_error (task, error);
}

/**
 * runnel_converter_convert_async:
 * @self: a converter, not to be changed until it is done
 * @input: (type filename): as for runnel_converter_convert ()
 * @output: (type filename): as for runnel_converter_convert ()
 * @cancellable: (nullable): stops it, and leaves nothing behind
 * @callback: (scope async): called when it is done
 * @user_data: for @callback
 *
 * Converts in a thread of its own.
 *
 * Since: 0.1
 */
void
runnel_converter_convert_async (RunnelConverter *self, const char *input,
                                const char *output,
                                GCancellable *cancellable,
                                GAsyncReadyCallback callback,
                                gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  Paths *paths;

  g_return_if_fail (RUNNEL_IS_CONVERTER (self));
  g_return_if_fail (input != NULL && output != NULL);

  paths = g_new (Paths, 1);
  paths->input = g_strdup (input);
  paths->output = g_strdup (output);
  task = g_task_new (self, cancellable, callback, user_data);
  g_task_set_source_tag (task, runnel_converter_convert_async);
  g_task_set_check_cancellable (task, FALSE);
  g_task_set_task_data (task, paths, free_paths);
  g_task_run_in_thread (task, convert_in_thread);
}

/**
 * runnel_converter_convert_finish:
 * @self: a converter
 * @result: what the callback was given
 * @error: return location for a #GError
 *
 * What came of runnel_converter_convert_async ().
 *
 * Returns: (transfer full): the report, or %NULL with an error
 *
 * Since: 0.1
 */
GVariant *
runnel_converter_convert_finish (RunnelConverter *self, GAsyncResult *result,
                                 GError **error)
{
  g_return_val_if_fail (g_task_is_valid (result, self), NULL);
  return g_task_propagate_pointer (G_TASK (result), error);
}
