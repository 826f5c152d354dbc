/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * DFlash drafts against NeMo AutoModel, the PyPI package dflash and llama.cpp
 * on random and trained weights: DIR/dflash with cases/ (values of single
 * blocks, walks with given numbers, and what the target gives), traces/ (whole
 * generations) and the same drafts as safetensors and GGUF; and packages of
 * them. Tolerances: 2e-4 + 2e-5 of the value with given taps, 1e-3 for the taps
 * themselves and what follows from them; candidates, guesses, accepted lengths
 * and replies are equal. All of it in one file, as all of it reads the same
 * drafts beside the same target.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <glib/gstdio.h>

#include "formats/converter.h"
#include "formats/json.h"
#include "generate/dflash-drafter.h"
#include "model/dflash.h"
#include "model/engine-private.h"
#include "model/model-private.h"
#include "logits.h"
#include "npz.h"

#define N_VOCAB 512
#define N_EMBD 128
#define N_LAYERS 2
#define MAX_SLOTS 8

static guint passed, failed, not_run;

typedef struct {
  char *dir;
  RunnelBackend *backend;
  RunnelEngine *target;
} Reference;

static void
report (const char *name, const char *problem)
{
  *(problem == NULL ? &passed : &failed) += 1;
  if (problem != NULL)
    printf ("  %-44s FAILED: %s\n", name, problem);
}

/* ---- Values -------------------------------------------------------------- */

typedef struct {
  Npz *npz;
  char *problem;             /* the first */
  double tolerance;          /* beside that in the values; 0: 2e-4 */
} Check;

static void
check_values (Check *self, const char *name, const float *ours, gsize n)
{
  const NpzArray *array = npz_find (self->npz, name);
  g_autofree float *theirs = NULL;

  if (self->problem != NULL || array == NULL)
    return;
  theirs = npz_dup_floats (array);
  if (theirs == NULL || array->n != n) {
    self->problem = g_strdup_printf ("%s has %zu values, not %zu", name,
        array->n, n);
    return;
  }
  for (gsize i = 0; i < n; i++)
    if (!(fabs ((double) ours[i] - theirs[i])
            <= (self->tolerance > 0 ? self->tolerance : 2e-4)
                + 2e-5 * fabs (theirs[i]))) {
      self->problem = g_strdup_printf ("%s[%zu] is %g, not %g", name, i,
          ours[i], theirs[i]);
      return;
    }
}

static void
check_ids (Check *self, const char *name, const gint32 *ours, gsize n)
{
  const NpzArray *array = npz_find (self->npz, name);
  g_autofree gint32 *theirs = NULL;

  if (self->problem != NULL || array == NULL)
    return;
  theirs = npz_dup_ints (array);
  if (theirs == NULL || array->n != n
      || memcmp (ours, theirs, n * sizeof *ours) != 0)
    self->problem = g_strdup_printf ("%s differs", name);
}

/* Keys and values of all rows of the context. */
static void
check_context (Check *self, const Reference *reference,
               const RunnelHistory *context, const RunnelShape *shape)
{
  const guint n = runnel_history_length (context);
  const guint row_floats = shape->n_kv_heads * shape->head_dim;
  const RunnelOps *ops = runnel_backend_ops (reference->backend);
  g_autofree float *k = g_new (float, (gsize) n * N_LAYERS * row_floats);
  g_autofree float *v = g_new (float, (gsize) n * N_LAYERS * row_floats);

  for (guint i = 0; i < n; i++) {
    float row_k[N_LAYERS * 64], row_v[N_LAYERS * 64];
    guint32 row;
    RunnelPage *page = runnel_history_find (context, i, &row);

    ops->kv_read (reference->backend, shape, runnel_page_data (page), row,
        row_k, row_v);
    for (guint l = 0; l < N_LAYERS; l++) {
      gsize at = ((gsize) l * n + i) * row_floats;

      memcpy (k + at, row_k + l * row_floats, row_floats * sizeof *k);
      memcpy (v + at, row_v + l * row_floats, row_floats * sizeof *v);
    }
  }
  for (guint l = 0; l < N_LAYERS; l++) {
    g_autofree char *k_name = g_strdup_printf ("l%u.k_ctx", l);
    g_autofree char *v_name = g_strdup_printf ("l%u.v_ctx", l);

    check_values (self, k_name, k + (gsize) l * n * row_floats,
        (gsize) n * row_floats);
    check_values (self, v_name, v + (gsize) l * n * row_floats,
        (gsize) n * row_floats);
  }
}

/* The scores along the greedy walk, behind every candidate of the slot before,
 * and the guesses. */
static void
check_walk (Check *self, const RunnelDflash *dflash,
            const RunnelDflashBlock *block, guint slots, gint32 anchor,
            guint rank)
{
  const guint k = block->n_candidates;
  g_autofree float *along = g_new (float, slots * k);
  g_autofree float *pairs = g_new (float, slots * k * k);
  gint32 draft[MAX_SLOTS], before = anchor;

  for (guint i = 0; i < slots; i++) {
    guint best = 0;

    for (guint a = 0; a < k; a++)
      runnel_dflash_score (dflash, block, i, i == 0 ? anchor
          : block->candidates[(i - 1) * k + a], pairs + (i * k + a) * k);
    runnel_dflash_score (dflash, block, i, before, along + i * k);
    for (guint b = 1; b < k; b++)
      if (along[i * k + b] > along[i * k + best])
        best = b;
    draft[i] = before = block->candidates[i * k + best];
  }
  check_ids (self, "cand_ids", block->candidates, slots * k);
  check_values (self, "cand_unary", block->logits, slots * k);
  if (block->gates != NULL)
    check_values (self, "gate", block->gates, slots * rank);
  check_values (self, "walk_scores", along, slots * k);
  check_values (self, "pair_scores", pairs, slots * k * k);
  check_ids (self, "draft", draft, slots);
}

/* Commits rows in pieces of the given sizes, over and over. */
static gboolean
commit (RunnelDflash *dflash, RunnelHistory *context, const gint32 *tokens,
        guint n, const float *taps, gsize row_floats, const guint *pieces,
        guint n_pieces, GError **error)
{
  for (guint done = 0, i = 0, take; done < n; done += take, i++) {
    take = MIN (pieces[i % n_pieces], n - done);
    if (!runnel_dflash_commit (dflash, context, tokens + done, take,
            taps + done * row_floats, error))
      return FALSE;
  }
  return TRUE;
}

static void
check_block (Check *self, const Reference *reference, RunnelDflash *dflash,
             RunnelModel *draft, const RunnelHistory *context,
             gint32 anchor, guint slots, GError **error)
{
  const RunnelHyperparameters *hp = runnel_checkpoint_hyperparameters (
      runnel_model_get_checkpoint (draft));
  RunnelShape shape = runnel_forward_shape (hp, RUNNEL_KV_TYPE_F32);
  RunnelDflashBlock block;
  float out[N_LAYERS][(MAX_SLOTS + 1) * N_EMBD];
  g_autofree float *logits = g_new (float, slots * N_VOCAB);
  RunnelTap taps[N_LAYERS];

  for (guint l = 0; l < N_LAYERS; l++)
    taps[l] = (RunnelTap) { l, 0, slots + 1, out[l], N_EMBD };
  runnel_dflash_block_init (&block, dflash);
  if (runnel_dflash_guess (dflash, context, anchor, slots, &block, taps,
          N_LAYERS, logits, error)) {
    check_context (self, reference, context, &shape);
    for (guint l = 0; l < N_LAYERS; l++) {
      g_autofree char *name = g_strdup_printf ("l%u.out", l);

      check_values (self, name, out[l], (gsize) (slots + 1) * N_EMBD);
    }
    check_values (self, "logits", logits, (gsize) slots * N_VOCAB);
    check_walk (self, dflash, &block, slots, anchor,
        hp->draft.selector_rank);
  }
  runnel_dflash_block_clear (&block);
}

/* A draft behind the context of a case. */
typedef struct {
  Npz *npz;
  RunnelModel *draft;
  RunnelDflash *dflash;
  RunnelHistory context;
  gint32 *anchor;
  guint slots;               /* behind the anchor's */
} Case;

static void
case_clear (Case *self)
{
  if (self->dflash != NULL)
    runnel_history_clear (&self->context);
  g_clear_pointer (&self->dflash, runnel_dflash_unref);
  g_clear_object (&self->draft);
  g_clear_pointer (&self->npz, npz_free);
  g_free (self->anchor);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Case, case_clear)

/* @base: the case's path without the number of slots; one file, that of most
 * slots, has the context of all. */
static gboolean
case_open (Case *self, const Reference *reference, const char *path,
           const char *base, guint slots, const guint *pieces, guint n_pieces,
           GError **error)
{
  g_autofree char *file = g_strdup_printf ("%s%u.npz", base, slots);
  g_autofree char *context_file
      = g_strdup_printf ("%s%u.npz", base, MAX_SLOTS);
  g_autoptr (Npz) from = npz_open (context_file, error);
  g_autofree gint32 *tokens = NULL;
  g_autofree float *taps = NULL;
  const NpzArray *array;

  self->npz = from == NULL ? NULL : npz_open (file, error);
  self->draft = self->npz == NULL ? NULL : runnel_model_open (path,
      RUNNEL_LOAD_MODE_MAP, error);
  self->dflash = self->draft == NULL ? NULL : runnel_dflash_new (self->draft,
      reference->target, error);
  if (self->dflash == NULL)
    return FALSE;
  self->slots = slots - 1;
  self->anchor = npz_dup_ints (npz_find (self->npz, "anchor"));
  array = npz_find (from, "taps");
  tokens = npz_dup_ints (npz_find (self->npz, "ctx_ids"));
  taps = npz_dup_floats (array);
  runnel_dflash_init_context (self->dflash, &self->context);
  return commit (self->dflash, &self->context, tokens, array->dims[0], taps,
      array->dims[1], pieces, n_pieces, error);
}

static void
check_case (const Reference *reference, const char *name, const char *path,
            const char *base, guint slots, const guint *pieces,
            guint n_pieces)
{
  g_autoptr (GError) error = NULL;
  g_auto (Case) opened = { NULL };
  Check check = { NULL };

  if (case_open (&opened, reference, path, base, slots, pieces, n_pieces,
          &error)) {
    check.npz = opened.npz;
    check_block (&check, reference, opened.dflash, opened.draft,
        &opened.context, *opened.anchor, opened.slots, &error);
  }
  report (name, error != NULL ? error->message : check.problem);
  g_free (check.problem);
}

static const guint splits[][8] = {
  { 64 }, { 1 }, { 3 }, { 8 }, { 1, 3, 8, 8, 3, 1, 8, 8 },
};
static const guint split_lengths[] = { 1, 1, 1, 1, 8 };

/* Of the same floats, in a file of its own. */
static char *
make_package (const char *folder)
{
  g_autoptr (RunnelConverter) converter = runnel_converter_new ();
  g_autoptr (GVariant) report = NULL;
  char *path = NULL;
  const int fd = g_file_open_tmp ("runnel-draft-XXXXXX.runnel", &path, NULL);

  g_close (fd, NULL);
  g_object_set (converter, "type", RUNNEL_PACKAGE_TYPE_SOURCE, NULL);
  report = runnel_converter_convert (converter, folder, path, NULL, NULL,
      NULL, NULL);
  return path;
}

static void
check_cases (const Reference *reference, const char *model)
{
  static const guint contexts[] = { 1, 5, 40 }, blocks[] = { 8, 5, 2 };
  g_autofree char *folder = g_build_filename (reference->dir, model, NULL);
  g_autofree char *gguf_name = g_strconcat (model, "-f32.gguf", NULL);
  g_autofree char *gguf = g_build_filename (reference->dir, "gguf", gguf_name,
      NULL);
  g_autofree char *package = make_package (folder);
  const char *paths[] = { folder, gguf, package };
  static const char *const formats[] = { "safetensors", "gguf", "package" };

  for (guint p = 0; p < 3; p++)
    for (guint c = 0; c < 9
        && g_file_test (paths[p], G_FILE_TEST_EXISTS); c++)
      for (guint s = 0; s < (contexts[c / 3] == 1 ? 1
              : G_N_ELEMENTS (splits)); s++) {
        g_autofree char *base = g_strdup_printf ("%s/cases/%s_ctx%u_b",
            reference->dir, model, contexts[c / 3]);
        g_autofree char *name = g_strdup_printf ("%s %s ctx %u b %u split %u",
            model, formats[p], contexts[c / 3], blocks[c % 3], s);

        check_case (reference, name, paths[p], base, blocks[c % 3], splits[s],
            split_lengths[s]);
      }
  g_unlink (package);
}

/* ---- Walks with given numbers -------------------------------------------- */

/* Draws along the candidates: the first whose sum of probabilities is above
 * the number. */
static char *
walk (const RunnelDflash *dflash, const RunnelDflashBlock *block,
      gint32 anchor, const RunnelJsonNode *node)
{
  const guint k = block->n_candidates;
  const double tau
      = runnel_json_node_double (runnel_json_node_member (node, "tau"));
  const RunnelJsonNode *path = runnel_json_node_member (node, "path");
  g_autofree float *scores = g_new (float, k);
  g_autofree double *q = g_new (double, k);
  gint32 before = anchor;

  for (guint i = 0; i < runnel_json_node_size (path); i++) {
    const double v = runnel_json_node_double (runnel_json_node_item (
            runnel_json_node_member (node, "v"), i));
    const RunnelJsonNode *law = runnel_json_node_item (
        runnel_json_node_member (node, "q"), i);
    double total = 0, sum = 0;
    guint picked = k;

    runnel_dflash_score (dflash, block, i, before, scores);
    for (guint b = 0; b < k; b++)
      total += q[b] = exp ((scores[b] - scores[0]) / tau);
    for (guint b = 0; b < k; b++) {
      const double theirs
          = runnel_json_node_double (runnel_json_node_item (law, b));

      if (!(fabs (q[b] / total - theirs) <= 2e-4))
        return g_strdup_printf ("slot %u: q is %g, not %g", i, q[b] / total,
            theirs);
      sum += q[b] / total;
      if (picked == k && sum > v)
        picked = b;
    }
    before = block->candidates[i * k + MIN (picked, k - 1)];
    if (before != runnel_json_node_double (runnel_json_node_item (path, i)))
      return g_strdup_printf ("slot %u: another token", i);
  }
  return NULL;
}

static char *
check_sampled (const Reference *reference, const RunnelJsonNode *node,
               GError **error)
{
  const char *name = runnel_json_node_string (
      runnel_json_node_member (node, "case"), NULL);
  const gsize n_base = strlen (name) - strlen ("8.npz");
  g_autofree char *model = g_strndup (name, strcspn (name, "_"));
  g_autofree char *folder = g_build_filename (reference->dir, model, NULL);
  g_autofree char *base = g_strdup_printf ("%s/cases/%.*s", reference->dir,
      (int) n_base, name);
  g_auto (Case) opened = { NULL };
  RunnelDflashBlock block;
  char *problem = NULL;

  if (!case_open (&opened, reference, folder, base,
          g_ascii_digit_value (name[n_base]), splits[0], split_lengths[0],
          error))
    return NULL;
  runnel_dflash_block_init (&block, opened.dflash);
  if (runnel_dflash_guess (opened.dflash, &opened.context, *opened.anchor,
          opened.slots, &block, NULL, 0, NULL, error))
    problem = walk (opened.dflash, &block, *opened.anchor, node);
  runnel_dflash_block_clear (&block);
  return problem;
}

static void
check_walks (const Reference *reference)
{
  g_autofree char *path = g_build_filename (reference->dir, "cases",
      "sampled_walk.json", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelJson) json = runnel_json_load (path, &error);
  const RunnelJsonNode *cases;

  if (json == NULL) {
    printf ("  walks not run: %s\n", error->message);
    not_run++;
    return;
  }
  cases = runnel_json_node_member (runnel_json_root (json), "cases");
  for (gsize i = 0; i < runnel_json_node_size (cases); i++) {
    g_autofree char *name = g_strdup_printf ("sampled walk %zu", i);
    g_autoptr (GError) failure = NULL;
    g_autofree char *problem = check_sampled (reference,
        runnel_json_node_item (cases, i), &failure);

    report (name, failure != NULL ? failure->message : problem);
  }
}

/* ---- What the target gives ----------------------------------------------- */

/* What goes into each layer, [n_layers][n][n_embd]: the embedding, and the
 * residual stream behind all layers but the last. */
static gboolean
tap_target (const Reference *reference, const gint32 *tokens, guint n,
            float *out)
{
  const RunnelWeights *weights
      = runnel_engine_get_weights (reference->target);
  const RunnelShape *shape = runnel_engine_get_shape (reference->target);
  const RunnelOps *ops = runnel_backend_ops (reference->backend);
  const guint half = weights->rope.half, n_layers = shape->n_layers;
  RunnelPass *pass = ops->pass_new (reference->backend, shape);
  g_autofree float *cos = g_new (float, n * half);
  g_autofree float *sin = g_new (float, n * half);
  g_autofree RunnelTap *taps = g_new (RunnelTap, n_layers);
  g_autoptr (GArray) keys = g_array_new (FALSE, FALSE, sizeof (RunnelKeys));
  RunnelHistory history;
  RunnelPassSequence sequence = { .n_rows = n };
  RunnelPassRows rows = { .n_rows = n, .tokens = tokens, .cos = cos,
    .sin = sin, .sequences = &sequence, .n_sequences = 1 };
  gboolean ok;

  runnel_history_init (&history, runnel_engine_get_pool (reference->target),
      shape->n_embd);
  ok = runnel_history_reserve (&history, n);
  for (guint i = 0; i < history.segments->len; i++) {
    const RunnelSegment *s
        = &g_array_index (history.segments, RunnelSegment, i);
    const RunnelKeys run = { runnel_page_data (s->page), s->first, s->n };

    g_array_append_val (keys, run);
  }
  sequence.keys = (const RunnelKeys *) keys->data;
  sequence.n_keys = keys->len;
  for (guint i = 0; i < n; i++)
    runnel_rope_angles (&weights->rope, i, cos + i * half, sin + i * half);
  for (guint i = 0; i < n; i++)
    ops->read_row (reference->backend, weights->embedding, tokens[i],
        out + (gsize) i * shape->n_embd);
  for (guint l = 0; l < n_layers - 1; l++)
    taps[l] = (RunnelTap) { l, 0, n,
      out + (gsize) (l + 1) * n * shape->n_embd, shape->n_embd };
  if (ok && (ok = ops->begin (pass, &rows))) {
    runnel_forward (weights, weights->embedding, pass, taps, n_layers - 1,
        NULL);
    ops->end (pass);
  }
  runnel_history_clear (&history);
  ops->pass_free (pass);
  return ok;
}

static void
check_target (const Reference *reference)
{
  const RunnelShape *shape = runnel_engine_get_shape (reference->target);
  g_autofree char *file = g_build_filename (reference->dir, "cases",
      "target_ctx40.npz", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (Npz) npz = npz_open (file, &error);
  g_autofree gint32 *tokens = NULL;
  g_autofree float *hidden = NULL, *logits = NULL;
  Check check = { npz, NULL, 1e-3 };
  gsize n;

  if (npz == NULL) {
    printf ("  target not run: %s\n", error->message);
    not_run++;
    return;
  }
  n = npz_find (npz, "ctx_ids")->n;
  tokens = npz_dup_ints (npz_find (npz, "ctx_ids"));
  hidden = g_new (float, shape->n_layers * n * shape->n_embd);
  if (!tap_target (reference, tokens, n, hidden))
    check.problem = g_strdup ("no memory");
  check_values (&check, "hidden_states", hidden,
      shape->n_layers * n * shape->n_embd);
  logits = logits_forward (reference->target, tokens, n, N_VOCAB, &error);
  if (logits != NULL)
    check_values (&check, "logits", logits, n * N_VOCAB);
  report ("target ctx 40", error != NULL ? error->message : check.problem);
  g_free (check.problem);
}

/* ---- Whole generations --------------------------------------------------- */

typedef struct {
  const RunnelJsonNode *node;
  RunnelSequence *sequence;
  GArray *reply;             /* gint32 */
  guint n_prompt, max_new, block;
  gint32 anchor;
} Run;

static gint64
get_int (const RunnelJsonNode *node, const char *key)
{
  gint64 value = 0;

  runnel_json_node_int64 (runnel_json_node_member (node, key), &value);
  return value;
}

static GArray *
get_ids (const RunnelJsonNode *array)
{
  GArray *ids = g_array_new (FALSE, FALSE, sizeof (gint32));

  for (gsize i = 0; array != NULL && i < runnel_json_node_size (array); i++) {
    gint64 value = -1;
    gint32 id;

    runnel_json_node_int64 (runnel_json_node_item (array, i), &value);
    id = value;
    g_array_append_val (ids, id);
  }
  return ids;
}

static gint32
arg_max (const float *logits)
{
  gint32 best = 0;

  for (gint32 i = 1; i < N_VOCAB; i++)
    if (logits[i] > logits[best])
      best = i;
  return best;
}

/* Guesses of the drafter, or those of the script. */
static gboolean
propose (Run *run, const RunnelJsonNode *step, RunnelProposal *proposal,
         GError **error)
{
  RunnelDrafts *drafts = runnel_sequence_get_drafts (run->sequence);
  const guint length = runnel_sequence_get_length (run->sequence);
  const gboolean shorten = strcmp (runnel_json_node_string (
          runnel_json_node_member (run->node, "driver"), NULL),
      "shortened_tail") == 0;
  const guint room = run->n_prompt + run->max_new - length;
  RunnelDraftRequest request = {
    .anchor = run->anchor,
    .max_tokens = (shorten ? MIN (run->block, room) : run->block) - 1,
    .position = length + 1,
  };
  RunnelDraftState *state;
  const gint32 *tokens;
  gsize n_tokens;

  proposal->n_tokens = 0;
  if (runnel_drafts_count (drafts) == 0) {
    g_autoptr (GArray) ids
        = get_ids (runnel_json_node_member (step, "proposal"));

    proposal->n_tokens = MIN (ids->len, RUNNEL_MAX_DRAFT);
    memcpy (proposal->tokens, ids->data,
        proposal->n_tokens * sizeof (gint32));
    return TRUE;
  }
  if (request.max_tokens == 0)
    return TRUE;
  state = runnel_drafts_get (drafts, 0);
  tokens = runnel_sequence_get_tokens (run->sequence, &n_tokens);
  return runnel_draft_state_catch_up (state, tokens, length, error)
      && runnel_draft_state_propose (state, &request, proposal, error);
}

/* What the trace says of this step, against ours. */
static char *
compare_step (Run *run, const RunnelJsonNode *step, guint length,
              const RunnelProposal *proposal, guint accepted, gint32 bonus)
{
  g_autoptr (GArray) ids
      = get_ids (runnel_json_node_member (step, "proposal"));

  if (get_int (step, "anchor") != run->anchor
      || get_int (step, "anchor_pos") != length)
    return g_strdup ("another anchor");
  if (ids->len != proposal->n_tokens || memcmp (ids->data, proposal->tokens,
          ids->len * sizeof (gint32)) != 0)
    return g_strdup_printf ("other guesses (%u, not %u)", proposal->n_tokens,
        ids->len);
  if (get_int (step, "accepted") != accepted
      || get_int (step, "bonus") != bonus)
    return g_strdup_printf ("%u accepted, then %d", accepted, bonus);
  return NULL;
}

static gboolean
verify (Run *run, const RunnelProposal *proposal, guint *accepted,
        gint32 *bonus, GError **error)
{
  const guint n = proposal->n_tokens;
  gint32 tokens[RUNNEL_MAX_DRAFT + 1] = { run->anchor };
  g_autofree float *logits = g_new (float, (n + 1) * N_VOCAB);

  memcpy (tokens + 1, proposal->tokens, n * sizeof *tokens);
  if (!runnel_sequence_forward (run->sequence, tokens, n + 1, logits,
          (n + 1) * N_VOCAB, error))
    return FALSE;
  for (*accepted = 0;; *accepted += 1) {
    *bonus = arg_max (logits + *accepted * N_VOCAB);
    if (*accepted == n || tokens[*accepted + 1] != *bonus)
      return TRUE;
  }
}

static char *
run_steps (Run *run, GError **error)
{
  const RunnelJsonNode *steps = runnel_json_node_member (run->node, "steps");

  for (gsize i = 0; i < runnel_json_node_size (steps); i++) {
    const RunnelJsonNode *step = runnel_json_node_item (steps, i);
    const guint length = runnel_sequence_get_length (run->sequence);
    RunnelProposal proposal = { 0 };
    guint accepted = 0;
    gint32 bonus = 0;
    char *problem;

    if (!propose (run, step, &proposal, error))
      return NULL;
    if (!verify (run, &proposal, &accepted, &bonus, error)
        || !runnel_sequence_truncate (run->sequence, length + 1 + accepted,
            error))
      return NULL;
    g_array_append_vals (run->reply, proposal.tokens, accepted);
    g_array_append_val (run->reply, bonus);
    problem = compare_step (run, step, length, &proposal, accepted, bonus);
    if (problem != NULL) {
      char *where = g_strdup_printf ("step %zu: %s", i, problem);

      g_free (problem);
      return where;
    }
    run->anchor = bonus;
  }
  return NULL;
}

static char *
compare_reply (Run *run)
{
  g_autoptr (GArray) ids
      = get_ids (runnel_json_node_member (run->node, "final_ids"));

  return ids->len <= run->reply->len && memcmp (ids->data, run->reply->data,
          ids->len * sizeof (gint32)) == 0 ? NULL
      : g_strdup ("another reply");
}

/* Prompt and first anchor: the first token of the reply, or the last of the
 * prompt. */
static gboolean
start (Run *run, const GArray *prompt, GError **error)
{
  const gboolean last = strcmp (runnel_json_node_string (
          runnel_json_node_member (run->node, "driver"), NULL),
      "anchor_is_last_prompt_token") == 0;
  const gint32 *tokens = (const gint32 *) prompt->data;
  float logits[N_VOCAB];

  run->n_prompt = prompt->len;
  run->max_new = get_int (run->node, "max_new");
  run->block = get_int (run->node, "block");
  if (last) {
    run->anchor = tokens[prompt->len - 1];
    return runnel_sequence_prefill (run->sequence, tokens, prompt->len - 1,
        7, FALSE, NULL, NULL, NULL, NULL, error);
  }
  if (!runnel_sequence_prefill (run->sequence, tokens, prompt->len, 7, FALSE,
          NULL, NULL, NULL, NULL, error)
      || !runnel_sequence_compute_logits (run->sequence, logits, N_VOCAB,
          error))
    return FALSE;
  run->anchor = arg_max (logits);
  g_array_append_val (run->reply, run->anchor);
  return TRUE;
}

static RunnelDrafter *
open_drafter (const Reference *reference, const char *draft, gboolean gguf,
              GError **error)
{
  g_autofree char *name = gguf ? g_strconcat (draft, "-f32.gguf", NULL)
      : g_strdup (draft);
  g_autofree char *path = g_build_filename (reference->dir,
      gguf ? "gguf" : ".", name, NULL);
  g_autoptr (RunnelModel) model = runnel_model_open (path,
      RUNNEL_LOAD_MODE_MAP, error);

  return model == NULL ? NULL : runnel_dflash_drafter_new (model, error);
}

static void
check_run (const Reference *reference, const RunnelJsonNode *node,
           const RunnelJsonNode *prompts, gboolean gguf, gsize number)
{
  const char *draft = runnel_json_node_string (
      runnel_json_node_member (node, "draft"), NULL);
  const char *driver = runnel_json_node_string (
      runnel_json_node_member (node, "driver"), NULL);
  g_autofree char *name = g_strdup_printf ("run %zu: %s %s%s", number, draft,
      driver, gguf ? " (gguf)" : "");
  g_autoptr (GArray) prompt = get_ids (runnel_json_node_member (
          runnel_json_node_item (prompts, get_int (node, "prompt")),
          "prompt"));
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelDrafter) drafter = strcmp (draft, "scripted") == 0 ? NULL
      : open_drafter (reference, draft, gguf, &error);
  g_autofree char *problem = NULL;
  Run run = { .node = node };

  if (error == NULL) {
    run.sequence = runnel_sequence_new (reference->target, 0, &error);
    run.reply = g_array_new (FALSE, FALSE, sizeof (gint32));
    if ((drafter == NULL
            || runnel_sequence_attach (run.sequence, drafter, &error))
        && start (&run, prompt, &error))
      problem = run_steps (&run, &error);
    if (error == NULL && problem == NULL)
      problem = compare_reply (&run);
    g_object_unref (run.sequence);
    g_array_unref (run.reply);
  }
  report (name, error != NULL ? error->message : problem);
}

static void
check_runs (const Reference *reference)
{
  g_autofree char *path = g_build_filename (reference->dir, "traces",
      "greedy.json", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelJson) json = runnel_json_load (path, &error);
  const RunnelJsonNode *runs, *prompts;

  if (json == NULL) {
    printf ("  traces not run: %s\n", error->message);
    not_run++;
    return;
  }
  runs = runnel_json_node_member (runnel_json_root (json), "runs");
  prompts = runnel_json_node_member (runnel_json_root (json), "target_only");
  for (gsize i = 0; i < runnel_json_node_size (runs); i++) {
    const RunnelJsonNode *run = runnel_json_node_item (runs, i);
    const char *draft = runnel_json_node_string (
        runnel_json_node_member (run, "draft"), NULL);
    g_autofree char *name = g_strconcat (draft, "-f32.gguf", NULL);
    g_autofree char *gguf = g_build_filename (reference->dir, "gguf", name,
        NULL);

    check_run (reference, run, prompts, FALSE, i);
    if (g_file_test (gguf, G_FILE_TEST_EXISTS))
      check_run (reference, run, prompts, TRUE, i);
  }
}

int
main (int argc, char **argv)
{
  static const char *const models[] = { "dflash2-tiny", "dflash1-tiny",
    "dflash2-swa-tiny", "dflash2-fresh" };
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelModel) model = NULL;
  g_autofree char *target = NULL;
  Reference reference = { NULL };

  if (argc != 2) {
    fprintf (stderr, "usage: %s DIR\n", argv[0]);
    return 2;
  }
  reference.dir = g_build_filename (argv[1], "dflash", NULL);
  target = g_build_filename (reference.dir, "target-tiny", NULL);
  model = runnel_model_open (target, RUNNEL_LOAD_MODE_MAP, &error);
  if (model != NULL)
    reference.backend = runnel_backend_get ("cpu", 1, NULL, &error);
  if (reference.backend != NULL)
    reference.target = runnel_engine_get (model, reference.backend,
        RUNNEL_KV_TYPE_F32, NULL, NULL, NULL, &error);
  if (reference.target == NULL) {
    printf ("  not run: %s\n", error->message);
    not_run++;
  }
  for (guint i = 0; reference.target != NULL && i < G_N_ELEMENTS (models); i++)
    check_cases (&reference, models[i]);
  if (reference.target != NULL) {
    check_walks (&reference);
    check_target (&reference);
    check_runs (&reference);
  }
  g_clear_object (&reference.target);
  g_clear_object (&reference.backend);
  g_free (reference.dir);
  printf ("conformance dflash: %u passed, %u failed, %u not run\n", passed,
      failed, not_run);
  return failed > 0;
}
