/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */

/* What drafting earns, against plain decoding in turn: lookup on replies that
 * repeat spans of the prompt and on open chat, a drafter that is always wrong,
 * and one whose guesses are right four times in each block of eight, beside
 * what the times of passes of one and eight rows predict for it. Greedy, and
 * every reply is checked to be that of plain decoding.
 *
 * Time is that of the calling thread, or of the clock with --wall; with one
 * thread the two are the same on a machine that does nothing else.
 * usage: bench-drafts [--wall] [-n TOKENS] [-t THREADS] [-p PROMPTS]
 *   MODEL EXTRACTION CHAT */
#include <runnel.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define BLOCK 8
#define N_RIGHT 4
#define N_ROUNDS 5

static gboolean use_wall;
static int n_tokens = 128, n_threads = 1, max_prompts = 1000;

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
  guint64 tokens, passes, blocks, proposed, accepted;
  double plain, drafted; /* s */
  double worst;          /* of one prompt: plain by drafted */
} Comparison;

/* The same prompt without and with the drafter, twice in turn; the better of
 * two times counts, for both. */
static void
compare (Comparison *self, RunnelEngine *engine, const GArray *prompt,
         RunnelDrafter *drafter, gboolean adaptive, gboolean ignore_eos)
{
  double seconds[2] = { G_MAXDOUBLE, G_MAXDOUBLE };
  Reply last[2] = { { NULL } };

  for (guint i = 0; i < 4; i++) {
    Reply reply = reply_to (engine, prompt, i % 2 ? drafter : NULL, adaptive,
                            ignore_eos);

    seconds[i % 2] = MIN (seconds[i % 2], reply.seconds);
    g_clear_pointer (&last[i % 2].tokens, g_array_unref);
    last[i % 2] = reply;
  }
  if (last[0].n_reply != last[1].n_reply ||
      memcmp (last[0].tokens->data, last[1].tokens->data,
              last[0].tokens->len * sizeof (gint32)) != 0)
    g_error ("%s: another reply than that of plain decoding", self->name);
  self->n_prompts++;
  self->tokens += last[0].n_reply;
  self->passes += last[1].drafts.passes;
  self->blocks += last[1].drafts.blocks;
  self->proposed += last[1].drafts.proposed;
  self->accepted += last[1].drafts.accepted;
  self->plain += seconds[0];
  self->drafted += seconds[1];
  self->worst = MIN (self->worst, seconds[0] / seconds[1]);
  g_array_unref (last[0].tokens);
  g_array_unref (last[1].tokens);
}

static void
print (const Comparison *self)
{
  if (self->n_prompts == 0)
    return;
  printf ("%-12s %4u %7" G_GUINT64_FORMAT " %8.1f %8.1f %7.2f %7.2f   %5.2f "
          "of %5.2f in %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT "\n",
          self->name, self->n_prompts, self->tokens,
          self->tokens / self->plain, self->tokens / self->drafted,
          self->plain / self->drafted, self->worst,
          (double) self->accepted / MAX (self->blocks, 1),
          (double) self->proposed / MAX (self->blocks, 1), self->blocks,
          self->passes);
  fflush (stdout);
}

static void
add_to (Comparison *sum, const Comparison *self)
{
  sum->n_prompts += self->n_prompts;
  sum->tokens += self->tokens;
  sum->passes += self->passes;
  sum->blocks += self->blocks;
  sum->proposed += self->proposed;
  sum->accepted += self->accepted;
  sum->plain += self->plain;
  sum->drafted += self->drafted;
  sum->worst = MIN (sum->worst, self->worst);
}

/* The prompts of a file, a line for each kind and one for all. */
static void
compare_file (RunnelEngine *engine, const char *path, RunnelDrafter *drafter)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL;
  g_auto (GStrv) lines = NULL;
  Comparison kinds[8], all = { .name = "all", .worst = G_MAXDOUBLE };
  guint n_kinds = 0;

  if (!g_file_get_contents (path, &text, NULL, &error))
    g_error ("%s", error->message);
  lines = g_strsplit (text, "\n", -1);
  for (guint i = 0, n = 0; lines[i] != NULL && n < max_prompts; i++) {
    char *prompt = strchr (lines[i], '\t');
    g_autoptr (GArray) tokens = NULL;

    if (prompt == NULL)
      continue;
    *prompt++ = '\0';
    if (n_kinds == 0 || !g_str_equal (kinds[n_kinds - 1].name, lines[i])) {
      g_assert_cmpuint (n_kinds, <, G_N_ELEMENTS (kinds));
      kinds[n_kinds++] =
        (Comparison){ .name = lines[i], .worst = G_MAXDOUBLE };
    }
    tokens = read_prompt (runnel_engine_get_model (engine), prompt);
    compare (&kinds[n_kinds - 1], engine, tokens, drafter, TRUE, FALSE);
    n++;
  }
  for (guint i = 0; i < n_kinds; i++) {
    print (&kinds[i]);
    add_to (&all, &kinds[i]);
  }
  if (n_kinds > 1)
    print (&all);
}

/* ---- Passes -------------------------------------------------------------- */

/* The least time of a pass of so many rows behind the prompt. */
static double
measure_pass (RunnelEngine *engine, const GArray *prompt, guint n_rows)
{
  const guint n_vocab =
    runnel_model_get_n_vocab (runnel_engine_get_model (engine));
  g_autoptr (RunnelSequence) sequence = runnel_sequence_new (engine, 0, NULL);
  g_autofree float *logits = g_new (float, (gsize) n_rows * n_vocab);
  const gint32 *tokens = (const gint32 *) prompt->data;
  double best = G_MAXDOUBLE;

  runnel_sequence_prefill (sequence, tokens, prompt->len, 0, TRUE, NULL, NULL,
                           NULL, NULL, NULL);
  for (guint i = 0; i < N_ROUNDS; i++) {
    const double started = now ();

    if (!runnel_sequence_forward (sequence, tokens, n_rows, logits,
                                  (gsize) n_rows * n_vocab, NULL))
      g_error ("a pass failed");
    best = MIN (best, now () - started);
    runnel_sequence_truncate (sequence, prompt->len, NULL);
  }
  return best;
}

static void
measure_synthetic (RunnelEngine *engine)
{
  g_autoptr (GArray) prompt =
    read_prompt (runnel_engine_get_model (engine), "Tell me about rivers.");
  Reply plain = reply_to (engine, prompt, NULL, TRUE, TRUE);
  g_autoptr (RunnelDrafter) wrong = oracle_drafter_new (plain.tokens, 0);
  g_autoptr (RunnelDrafter) right = oracle_drafter_new (plain.tokens, N_RIGHT);
  Comparison comparison = { .name = "always wrong", .worst = G_MAXDOUBLE };
  Comparison synthetic = { .name = "4 of 7 right", .worst = G_MAXDOUBLE };
  double one = 0, predicted = 1;

  for (guint i = 0; i < N_ROUNDS; i++)
    compare (&comparison, engine, prompt, wrong, TRUE, TRUE);
  print (&comparison);
  for (guint i = 0; i < N_ROUNDS; i++)
    compare (&synthetic, engine, prompt, right, FALSE, TRUE);
  print (&synthetic);
  g_array_unref (plain.tokens);
  for (guint n = 1; n <= 2 * BLOCK; n++) {
    const double seconds = measure_pass (engine, prompt, n);

    one = n == 1 ? seconds : one;
    printf ("%s%u: %.2f ms, × %.2f", n == 1 ? "passes, by rows: " : ", ", n,
            seconds * 1e3, seconds / one);
    if (n == BLOCK)
      predicted = (N_RIGHT + 1) * one / seconds;
  }
  printf ("\n4 of 7 right: %.0f %% of the predicted speed-up of %.2f\n",
          100 * synthetic.plain / synthetic.drafted / predicted, predicted);
}

int
main (int argc, char **argv)
{
  const GOptionEntry entries[] = {
    { "wall", 0, 0, G_OPTION_ARG_NONE, &use_wall, "Time by the clock", NULL },
    { "tokens", 'n', 0, G_OPTION_ARG_INT, &n_tokens, "Of a reply", "N" },
    { "threads", 't', 0, G_OPTION_ARG_INT, &n_threads, "To compute with",
      "N" },
    { "prompts", 'p', 0, G_OPTION_ARG_INT, &max_prompts, "Of each file",
      "N" },
    G_OPTION_ENTRY_NULL
  };
  g_autoptr (GOptionContext) context =
    g_option_context_new ("MODEL EXTRACTION CHAT");
  g_autoptr (GError) error = NULL;
  g_autoptr (RunnelModel) model = NULL;
  g_autoptr (RunnelBackend) backend = NULL;
  g_autoptr (RunnelEngine) engine = NULL;
  g_autoptr (RunnelDrafter) lookup = NULL;

  g_option_context_add_main_entries (context, entries, NULL);
  if (!g_option_context_parse (context, &argc, &argv, &error))
    g_error ("%s", error->message);
  if (argc != 4)
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

  printf ("%s, kernels %s, %d threads, %s time, replies of up to %d tokens; "
          "tokens/s plain and drafted,\nspeed-up of all and of the worst "
          "prompt, guesses right in a pass\n\n",
          runnel_model_get_name (model), runnel_backend_get_kernels (backend),
          n_threads, use_wall ? "wall" : "CPU", n_tokens);
  compare_file (engine, argv[2], lookup);
  compare_file (engine, argv[3], lookup);
  measure_synthetic (engine);
  return 0;
}
