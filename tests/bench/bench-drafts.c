/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* What drafting earns, against plain decoding in turn: lookup on replies that
 * repeat spans of the prompt and on open chat, a drafter that is always wrong,
 * and one whose guesses are right four times in each block of eight, beside
 * what the times of passes of one and eight rows predict for it. Greedy, so
 * without a seed, and every reply is checked to be that of plain decoding.
 *
 * A time is the median of the rounds; the spread is that of whole rounds. It is
 * the time of the calling thread, or of the clock with --wall; with one thread
 * the two are the same on a machine that does nothing else.
 * usage: bench-drafts [--wall] [--json] [-n TOKENS] [-t THREADS] [-p PROMPTS]
 *   [-r ROUNDS] MODEL EXTRACTION CHAT */
#include <runnel.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "machine.h"

#define BLOCK 8
#define N_RIGHT 4
#define MAX_ROUNDS 99
/* Measurements of a pass in a reply. */
#define N_PASSES 5
/* Prompts of the drafters that know the reply. */
#define N_ORACLE_PROMPTS 6
/* Tokens in a row that make what a reply repeats a span of the prompt. */
#define SPAN 4

static gboolean use_wall, write_json;
static int n_tokens = 128, n_threads = 1, max_prompts = 1000, n_rounds = 3;

/* ---- A drafter that knows the reply -------------------------------------- */

typedef struct {
  RunnelDrafter parent;
  const GArray *tokens; /* gint32: prompt and reply */
  guint n_right;        /* guesses of a block that are right */
} OracleDrafter;
typedef RunnelDrafterClass OracleDrafterClass;
static GType oracle_drafter_get_type (void);
G_DEFINE_TYPE (OracleDrafter, oracle_drafter, RUNNEL_TYPE_DRAFTER)

typedef struct {
  RunnelDraftState parent;
  const OracleDrafter *drafter;
} OracleState;
typedef RunnelDraftStateClass OracleStateClass;
static GType oracle_state_get_type (void);
G_DEFINE_TYPE (OracleState, oracle_state, RUNNEL_TYPE_DRAFT_STATE)

static gboolean
oracle_state_feed (RunnelDraftState *state, const gint32 *tokens, guint n,
                   const float *taps, GError **error)
{
  return TRUE;
}

static void
oracle_state_truncate (RunnelDraftState *state, guint n_rows)
{
}

static RunnelDraftState *
oracle_state_new (const OracleDrafter *drafter)
{
  OracleState *self = g_object_new (oracle_state_get_type (), NULL);

  self->drafter = drafter;
  return RUNNEL_DRAFT_STATE (self);
}

static RunnelDraftState *
oracle_state_fork (RunnelDraftState *state)
{
  return oracle_state_new (((OracleState *) state)->drafter);
}

static gboolean
oracle_state_propose (RunnelDraftState *state,
                      const RunnelDraftRequest *request,
                      RunnelProposal *proposal, GError **error)
{
  const OracleDrafter *drafter = ((OracleState *) state)->drafter;

  proposal->n_tokens = MIN (request->max_tokens, BLOCK - 1);
  for (guint i = 0; i < proposal->n_tokens; i++) {
    const gsize at = request->position + i;
    gint32 token = at < drafter->tokens->len
                     ? g_array_index (drafter->tokens, gint32, at)
                     : 0;

    proposal->tokens[i] = i < drafter->n_right ? token : token ^ 1;
  }
  return TRUE;
}

static void
oracle_state_class_init (OracleStateClass *klass)
{
  klass->feed = oracle_state_feed;
  klass->truncate = oracle_state_truncate;
  klass->fork = oracle_state_fork;
  klass->propose = oracle_state_propose;
}

static void
oracle_state_init (OracleState *self)
{
}

static RunnelDraftState *
oracle_drafter_new_state (RunnelDrafter *drafter, RunnelEngine *engine,
                          GError **error)
{
  return oracle_state_new ((OracleDrafter *) drafter);
}

static void
oracle_drafter_class_init (OracleDrafterClass *klass)
{
  klass->new_state = oracle_drafter_new_state;
}

static void
oracle_drafter_init (OracleDrafter *self)
{
}

static RunnelDrafter *
oracle_drafter_new (const GArray *tokens, guint n_right)
{
  OracleDrafter *self = g_object_new (oracle_drafter_get_type (), NULL);

  self->tokens = tokens;
  self->n_right = n_right;
  runnel_drafter_set_identity (RUNNEL_DRAFTER (self), "oracle", NULL, 0);
  return RUNNEL_DRAFTER (self);
}

/* ---- Replies ------------------------------------------------------------- */

typedef struct {
  GArray *tokens; /* gint32: prompt and reply */
  guint n_reply;
  double seconds; /* after the prompt was read */
  RunnelDraftStats drafts;
} Reply;

static double
now (void)
{
  struct timespec time;

  clock_gettime (use_wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

/* The prompt in the model's template, as tokens. */
static GArray *
read_prompt (RunnelModel *model, const char *prompt)
{
  g_autoptr (GError) error = NULL;
  RunnelTokenizer *tokenizer = runnel_model_get_tokenizer (model, &error);
  RunnelChatTemplate *template = runnel_model_get_chat_template (model, &error);
  g_auto (GStrv) parts = g_strsplit (prompt, "\"", -1);
  g_autofree char *escaped = g_strjoinv ("\\\"", parts);
  g_autofree char *variables =
    g_strdup_printf ("{\"add_generation_prompt\":true,\"messages\":"
                     "[{\"role\":\"user\",\"content\":\"%s\"}]}",
                     escaped);
  g_autoptr (RunnelRenderedText) text = NULL;
  g_autofree gint32 *tokens = NULL;
  GArray *array = g_array_new (FALSE, FALSE, sizeof (gint32));
  const RunnelTextSpan *spans;
  gsize n_spans, length, n;
  const char *data;

  if (template == NULL)
    g_error ("%s", error->message);
  text = runnel_chat_template_render (template, variables, -1, NULL, &error);
  if (text == NULL)
    g_error ("%s", error->message);
  data = runnel_rendered_text_get_text (text, &length);
  spans = runnel_rendered_text_get_spans (text, &n_spans);
  tokens = runnel_tokenizer_encode_spans (tokenizer, data, length, spans,
                                          n_spans, &n, &error);
  if (tokens == NULL)
    g_error ("%s", error->message);
  return g_array_append_vals (array, tokens, n);
}

static Reply
reply_to (RunnelEngine *engine, const GArray *prompt, RunnelDrafter *drafter,
          gboolean adaptive, gboolean ignore_eos)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelGenerationParams) params = runnel_generation_params_new ();
  g_autoptr (RunnelGeneration) generation = NULL;
  RunnelSequence *sequence = runnel_sequence_new (engine, 0, &error);
  RunnelGenerationStep step = { 0 };
  Reply reply = { .tokens = g_array_copy ((GArray *) prompt) };
  double started;

  params->sampler->temperature = 0;
  params->max_tokens = n_tokens;
  params->adaptive_drafts = adaptive;
  params->ignore_eos = ignore_eos;
  if (drafter != NULL && !runnel_sequence_attach (sequence, drafter, &error))
    g_error ("%s", error->message);
  if (!runnel_sequence_prefill (sequence, (gint32 *) prompt->data, prompt->len,
                                0, TRUE, NULL, NULL, NULL, NULL, &error))
    g_error ("%s", error->message);
  generation = runnel_generation_new (sequence, params, &error);
  started = now ();
  while (!step.finished) {
    if (!runnel_generation_next (generation, &step, &error))
      g_error ("%s", error->message);
    g_array_append_vals (reply.tokens, step.tokens, step.n_tokens);
  }
  reply.seconds = now () - started;
  reply.n_reply = reply.tokens->len - prompt->len;
  runnel_generation_get_draft_stats (generation, &reply.drafts);
  return reply;
}

/* ---- Comparisons --------------------------------------------------------- */

typedef struct {
  const char *name;
  guint n_prompts;
  guint64 tokens, copied, passes, blocks, proposed, accepted;
  double plain, drafted;                        /* s: sums of medians */
  double rounds[2][MAX_ROUNDS];                 /* s: sums, plain and drafted */
  double worst;                                 /* prompt: plain by drafted */
} Comparison;

static int
compare_doubles (const void *a, const void *b)
{
  const double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

static double
get_median (const double *values, guint n)
{
  double sorted[MAX_ROUNDS];

  memcpy (sorted, values, n * sizeof *sorted);
  qsort (sorted, n, sizeof *sorted, compare_doubles);
  return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static gboolean
is_in_prompt (const gint32 *tokens, guint n_prompt, const gint32 *span)
{
  for (guint i = 0; i + SPAN <= n_prompt; i++)
    if (memcmp (tokens + i, span, SPAN * sizeof *span) == 0)
      return TRUE;
  return FALSE;
}

/* Tokens of the reply that stand in spans of the prompt. */
static guint
count_copied (const Reply *reply)
{
  const gint32 *tokens = (const gint32 *) reply->tokens->data;
  const guint length = reply->tokens->len, n_prompt = length - reply->n_reply;
  guint n = 0, done = n_prompt;

  for (guint i = n_prompt; i + SPAN <= length; i++)
    if (is_in_prompt (tokens, n_prompt, tokens + i)) {
      n += i + SPAN - MAX (done, i);
      done = i + SPAN;
    }
  return n;
}

static void
check_same (const Comparison *self, const Reply *plain, const Reply *drafted)
{
  if (plain->n_reply != drafted->n_reply ||
      memcmp (plain->tokens->data, drafted->tokens->data,
              plain->tokens->len * sizeof (gint32)) != 0)
    g_error ("%s: another reply than that of plain decoding", self->name);
}

/* The same prompt without and with the drafter in turn. */
static void
compare (Comparison *self, RunnelEngine *engine, const GArray *prompt,
         RunnelDrafter *drafter, gboolean adaptive, gboolean ignore_eos)
{
  double seconds[2][MAX_ROUNDS], plain, drafted;

  for (int i = 0; i < n_rounds; i++) {
    Reply replies[2];

    for (guint k = 0; k < 2; k++) {
      replies[k] = reply_to (engine, prompt, k ? drafter : NULL, adaptive,
                             ignore_eos);
      seconds[k][i] = replies[k].seconds;
      self->rounds[k][i] += replies[k].seconds;
    }
    check_same (self, &replies[0], &replies[1]);
    if (i == n_rounds - 1) {
      self->tokens += replies[0].n_reply;
      self->copied += count_copied (&replies[0]);
      self->passes += replies[1].drafts.passes;
      self->blocks += replies[1].drafts.blocks;
      self->proposed += replies[1].drafts.proposed;
      self->accepted += replies[1].drafts.accepted;
    }
    g_array_unref (replies[0].tokens);
    g_array_unref (replies[1].tokens);
  }
  plain = get_median (seconds[0], n_rounds);
  drafted = get_median (seconds[1], n_rounds);
  self->n_prompts++;
  self->plain += plain;
  self->drafted += drafted;
  self->worst = MIN (self->worst, plain / drafted);
}

/* The least and the most that drafting earned in a round. */
static void
get_spread (const Comparison *self, double *ret_least, double *ret_most)
{
  *ret_least = G_MAXDOUBLE;
  *ret_most = 0;
  for (int i = 0; i < n_rounds; i++) {
    const double ratio = self->rounds[0][i] / self->rounds[1][i];

    *ret_least = MIN (*ret_least, ratio);
    *ret_most = MAX (*ret_most, ratio);
  }
}

static void
add_json (const Comparison *self, JsonOutput *json)
{
  double least, most;

  get_spread (self, &least, &most);
  json_begin_object (json, NULL);
  json_add_string (json, "name", self->name, -1);
  json_add_uint (json, "prompts", self->n_prompts);
  json_add_uint (json, "tokens", self->tokens);
  json_add_double (json, "copied", (double) self->copied / self->tokens);
  json_add_double (json, "plain_tokens_per_second",
                   self->tokens / self->plain);
  json_add_double (json, "drafted_tokens_per_second",
                   self->tokens / self->drafted);
  json_add_double (json, "speed_up", self->plain / self->drafted);
  json_add_double (json, "least_round", least);
  json_add_double (json, "most_round", most);
  json_add_double (json, "worst_prompt", self->worst);
  json_add_uint (json, "passes", self->passes);
  json_add_uint (json, "blocks", self->blocks);
  json_add_uint (json, "proposed", self->proposed);
  json_add_uint (json, "accepted", self->accepted);
  json_end_object (json);
}

static void
print (const Comparison *self, JsonOutput *json)
{
  double least, most;

  if (self->n_prompts == 0)
    return;
  add_json (self, json);
  if (write_json)
    return;
  get_spread (self, &least, &most);
  printf ("%-12s %4u %6" G_GUINT64_FORMAT " %5.0f %% %7.1f %7.1f %6.2f "
          "(%.2f to %.2f) %5.2f   %4.2f of %4.2f in %" G_GUINT64_FORMAT
          " of %" G_GUINT64_FORMAT "\n",
          self->name, self->n_prompts, self->tokens,
          100.0 * self->copied / self->tokens, self->tokens / self->plain,
          self->tokens / self->drafted, self->plain / self->drafted, least,
          most, self->worst, (double) self->accepted / MAX (self->blocks, 1),
          (double) self->proposed / MAX (self->blocks, 1), self->blocks,
          self->passes);
  fflush (stdout);
}

static void
add_to (Comparison *sum, const Comparison *self)
{
  sum->n_prompts += self->n_prompts;
  sum->tokens += self->tokens;
  sum->copied += self->copied;
  sum->passes += self->passes;
  sum->blocks += self->blocks;
  sum->proposed += self->proposed;
  sum->accepted += self->accepted;
  sum->plain += self->plain;
  sum->drafted += self->drafted;
  sum->worst = MIN (sum->worst, self->worst);
  for (int i = 0; i < n_rounds; i++)
    for (guint k = 0; k < 2; k++)
      sum->rounds[k][i] += self->rounds[k][i];
}

/* The lines of a file of prompts, a kind and a prompt each. */
static char **
read_prompts (const char *path)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL;
  g_auto (GStrv) lines = NULL;
  g_autoptr (GStrvBuilder) prompts = g_strv_builder_new ();

  if (!g_file_get_contents (path, &text, NULL, &error))
    g_error ("%s", error->message);
  lines = g_strsplit (text, "\n", -1);
  for (guint i = 0, n = 0; lines[i] != NULL && n < (guint) max_prompts; i++)
    if (strchr (lines[i], '\t') != NULL) {
      g_strv_builder_add (prompts, lines[i]);
      n++;
    }
  return g_strv_builder_end (prompts);
}

/* The prompts of a file, a line for each kind and one for all. */
static void
compare_file (RunnelEngine *engine, const char *path, RunnelDrafter *drafter,
              JsonOutput *json)
{
  g_auto (GStrv) lines = read_prompts (path);
  Comparison kinds[8], all = { .name = "all", .worst = G_MAXDOUBLE };
  guint n_kinds = 0;

  for (guint i = 0; lines[i] != NULL; i++) {
    char *prompt = strchr (lines[i], '\t');
    g_autoptr (GArray) tokens = NULL;

    *prompt++ = '\0';
    if (n_kinds == 0 || !g_str_equal (kinds[n_kinds - 1].name, lines[i])) {
      g_assert_cmpuint (n_kinds, <, G_N_ELEMENTS (kinds));
      kinds[n_kinds++] =
        (Comparison){ .name = lines[i], .worst = G_MAXDOUBLE };
    }
    tokens = read_prompt (runnel_engine_get_model (engine), prompt);
    compare (&kinds[n_kinds - 1], engine, tokens, drafter, TRUE, FALSE);
  }
  for (guint i = 0; i < n_kinds; i++) {
    print (&kinds[i], json);
    add_to (&all, &kinds[i]);
  }
  if (n_kinds > 1)
    print (&all, json);
}

/* ---- Passes -------------------------------------------------------------- */

/* The median times of passes of 1, 2, 3… rows, in seconds, in turn, in the
 * middle of a reply. */
static void
measure_passes (RunnelEngine *engine, const GArray *text, double *ret_seconds)
{
  const guint n_vocab =
    runnel_model_get_n_vocab (runnel_engine_get_model (engine));
  const guint length = text->len - n_tokens / 2;
  g_autoptr (RunnelSequence) sequence = runnel_sequence_new (engine, 0, NULL);
  g_autofree float *logits = g_new (float, (gsize) 2 * BLOCK * n_vocab);
  const gint32 *tokens = (const gint32 *) text->data;
  double seconds[2 * BLOCK][N_PASSES];

  runnel_sequence_prefill (sequence, tokens, length, 0, TRUE, NULL, NULL, NULL,
                           NULL, NULL);
  for (int i = 0; i < N_PASSES; i++)
    for (guint n = 1; n <= 2 * BLOCK; n++) {
      const double started = now ();

      if (!runnel_sequence_forward (sequence, tokens, n, logits,
                                    (gsize) n * n_vocab, NULL))
        g_error ("a pass failed");
      seconds[n - 1][i] = now () - started;
      runnel_sequence_truncate (sequence, length, NULL);
    }
  for (guint n = 0; n < 2 * BLOCK; n++)
    ret_seconds[n] = get_median (seconds[n], N_PASSES);
}

static void
print_passes (const double *seconds, double speed_up, JsonOutput *json)
{
  const double predicted =
    (N_RIGHT + 1) * seconds[0] / seconds[BLOCK - 1];

  json_begin_array (json, "pass_seconds");
  for (guint n = 0; n < 2 * BLOCK; n++)
    json_add_double (json, NULL, seconds[n]);
  json_end_array (json);
  json_add_double (json, "predicted_speed_up", predicted);
  json_add_double (json, "part_of_predicted", speed_up / predicted);
  if (write_json)
    return;
  for (guint n = 0; n < 2 * BLOCK; n++)
    printf ("%s%u: %.2f ms, × %.2f", n == 0 ? "passes, by rows: " : ", ",
            n + 1, seconds[n] * 1e3, seconds[n] / seconds[0]);
  printf ("\n4 of 7 right: %.0f %% of the predicted speed-up of %.2f\n",
          100 * speed_up / predicted, predicted);
}

static void
measure_synthetic (RunnelEngine *engine, const char *path, JsonOutput *json)
{
  g_auto (GStrv) lines = read_prompts (path);
  Comparison comparison = { .name = "always wrong", .worst = G_MAXDOUBLE };
  Comparison synthetic = { .name = "4 of 7 right", .worst = G_MAXDOUBLE };
  double seconds[2 * BLOCK], sums[2 * BLOCK] = { 0 };

  for (guint i = 0; lines[i] != NULL && i < N_ORACLE_PROMPTS; i++) {
    g_autoptr (GArray) prompt = read_prompt (
      runnel_engine_get_model (engine), strchr (lines[i], '\t') + 1);
    Reply plain = reply_to (engine, prompt, NULL, TRUE, TRUE);
    g_autoptr (RunnelDrafter) wrong = oracle_drafter_new (plain.tokens, 0);
    g_autoptr (RunnelDrafter) right =
      oracle_drafter_new (plain.tokens, N_RIGHT);

    compare (&comparison, engine, prompt, wrong, TRUE, TRUE);
    compare (&synthetic, engine, prompt, right, FALSE, TRUE);
    measure_passes (engine, plain.tokens, seconds);
    for (guint n = 0; n < 2 * BLOCK; n++)
      sums[n] += seconds[n];
    g_array_unref (plain.tokens);
  }
  print (&comparison, json);
  print (&synthetic, json);
  json_end_array (json);
  for (guint n = 0; n < 2 * BLOCK; n++)
    sums[n] /= synthetic.n_prompts;
  print_passes (sums, synthetic.plain / synthetic.drafted, json);
}

static void
print_head (RunnelEngine *engine, JsonOutput *json)
{
  RunnelBackend *backend = runnel_engine_get_backend (engine);
  const char *name = runnel_model_get_name (runnel_engine_get_model (engine));
  g_autofree char *machine = machine_describe (backend);

  json_begin_object (json, NULL);
  json_add_string (json, "model", name, -1);
  machine_add_json (json, backend);
  json_add_string (json, "time", use_wall ? "wall" : "thread CPU", -1);
  json_add_uint (json, "rounds", n_rounds);
  json_add_uint (json, "max_tokens", n_tokens);
  json_begin_array (json, "comparisons");
  if (write_json)
    return;
  printf ("%s\n%s\n%s time, medians of %d rounds, greedy replies of up to %d "
          "tokens\n\n"
          "%-12s %4s %6s %7s %7s %7s %6s %14s %5s   %s\n",
          name, machine, use_wall ? "wall" : "thread CPU", n_rounds, n_tokens,
          "", "", "tokens", "copied", "plain/s", "draft/s", "ratio",
          "rounds", "worst", "guesses right in a pass");
}

int
main (int argc, char **argv)
{
  const GOptionEntry entries[] = {
    { "wall", 0, 0, G_OPTION_ARG_NONE, &use_wall, "Time by the clock", NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &write_json, "One line of JSON", NULL },
    { "tokens", 'n', 0, G_OPTION_ARG_INT, &n_tokens, "Of a reply", "N" },
    { "threads", 't', 0, G_OPTION_ARG_INT, &n_threads, "To compute with",
      "N" },
    { "prompts", 'p', 0, G_OPTION_ARG_INT, &max_prompts, "Of each file",
      "N" },
    { "rounds", 'r', 0, G_OPTION_ARG_INT, &n_rounds, "Of each prompt", "N" },
    G_OPTION_ENTRY_NULL
  };
  g_autoptr (GOptionContext) context =
    g_option_context_new ("MODEL EXTRACTION CHAT");
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelModel) model = NULL;
  g_autoptr (RunnelBackend) backend = NULL;
  g_autoptr (RunnelEngine) engine = NULL;
  g_autoptr (RunnelDrafter) lookup = NULL;
  g_auto (JsonOutput) json = JSON_OUTPUT_INIT;

  g_option_context_add_main_entries (context, entries, NULL);
  if (!g_option_context_parse (context, &argc, &argv, &error))
    g_error ("%s", error->message);
  if (argc != 4 || n_rounds < 1 || n_rounds > MAX_ROUNDS || n_tokens < 2)
    g_error ("usage: bench-drafts [OPTIONS] MODEL EXTRACTION CHAT");
  model = runnel_model_open (argv[1], RUNNEL_LOAD_MODE_MAP, &error);
  backend =
    model ? runnel_backend_get ("cpu", n_threads, NULL, &error) : NULL;
  engine = backend ? runnel_engine_get (model, backend, RUNNEL_KV_TYPE_F16,
                                        NULL, NULL, NULL, &error)
                   : NULL;
  if (engine == NULL)
    g_error ("%s", error->message);
  lookup = runnel_lookup_drafter_new (1, 16, RUNNEL_MAX_DRAFT, NULL);

  print_head (engine, &json);
  compare_file (engine, argv[2], lookup, &json);
  compare_file (engine, argv[3], lookup, &json);
  measure_synthetic (engine, argv[3], &json);
  json_end_object (&json);
  if (write_json)
    json_print (&json);
  return 0;
}
