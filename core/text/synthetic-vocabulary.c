/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "synthetic-vocabulary.h"

#include <string.h>

#include "byte-level.h"

static const char *const controls[RUNNEL_SYNTHETIC_CONTROLS] = {
  "<|endoftext|>", "<|im_start|>", "<|im_end|>",
  "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
  "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>",
  "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>",
  "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>",
  "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>",
  "<tool_response>", "</tool_response>", "<think>", "</think>",
};

enum { END_OF_TEXT, IM_START, IM_END };

#define CHATML \
  "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' " \
  "+ message.content + '<|im_end|>\\n' }}{%- endfor %}" \
  "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}" \
  "{%- endif %}"

/* Frequent words of English. */
static const char words[] =
  "the of and to in is that for it was on are as with his they be at one have "
  "this from or had by not but what some we can out other were all there when "
  "up use your how said an each she which their time if will way about many "
  "then them write would like so these her long make thing see him two has "
  "look more day could go come did number sound no most people my over know "
  "water than call first who may down side been now find any new work part "
  "take get place made live where after back little only round man year came "
  "show every good me give our under name very through just form sentence "
  "great think say help low line differ turn cause much mean before move "
  "right boy old too same tell does set three want air well also play small "
  "end put home read hand port large spell add even land here must big high "
  "such follow act why ask men change went light kind off need house picture "
  "try us again animal point mother world near build self earth father head "
  "stand own page should country found answer school grow study still learn "
  "plant cover food sun four between state keep eye never last let thought "
  "city tree cross farm hard start might story saw far sea draw left late run "
  "while press close night real life few north open seem together next white "
  "children begin got walk example ease paper group always music those both "
  "mark often letter until mile river car feet care second book carry took "
  "science eat room friend began idea fish mountain stop once base hear horse "
  "cut sure watch color face wood main enough plain girl usual young ready "
  "above ever red list though feel talk bird soon body dog family direct pose "
  "leave song measure door product black short numeral class wind question "
  "happen complete ship area half rock order fire south problem piece told "
  "knew pass since top whole king space heard best hour better true during "
  "hundred five remember step early hold west ground interest reach fast verb "
  "sing listen six table travel less morning ten simple several vowel toward "
  "war lay against pattern slow center love person money serve appear road "
  "map rain rule govern pull cold notice voice unit power town fine certain "
  "fly fall lead cry dark machine note wait plan figure star box noun field "
  "rest correct able pound done beauty drive stood contain front teach week "
  "final gave green quick develop ocean warm free minute strong special mind "
  "behind clear tail produce fact street inch multiply nothing course stay "
  "wheel full force blue object decide surface deep moon island foot system "
  "busy test record boat common gold possible plane age dry wonder laugh "
  "thousand ago ran check game shape equate miss brought heat snow tire bring "
  "yes distant fill east paint language among model data value function "
  "return error string file code";

/* What follows them, and stands alone inside longer words. */
static const char endings[] =
  "s ed ing er ly tion ment ness able ful less ity ive al ous ent ence ation "
  "ers ings ist ism ize ised ised est ship hood ward ian ary ory ate";

static const char onsets[] =
  "b bl br c ch cl cr d dr f fl fr g gl gr h j k l m n p ph pl pr qu r s sc sh "
  "sk sl sm sn sp st str sw t th tr tw v w wh y z";
static const char nuclei[] = "a e i o u ai ea ee ie oo ou ay";
static const char codas[] = "n r s t l nd nt ck m st ng p d ss ll x";

/* Blocks of Unicode: Latin with accents, Greek, Cyrillic, kana, CJK. */
static const struct { gunichar first, last; } blocks[] = {
  { 0xc0, 0x17f }, { 0x391, 0x3c9 }, { 0x410, 0x451 }, { 0x3001, 0x3011 },
  { 0x3041, 0x3096 }, { 0x30a1, 0x30fa }, { 0xff01, 0xff5e },
  { 0x4e00, 0x9fa5 },
};

typedef struct {
  GPtrArray *tokens;      /* in the alphabet of byte-level.h */
  GPtrArray *merges;
  GHashTable *known;      /* the tokens, borrowed */
  guint n_regular;        /* tokens there shall be, without the controls */
} Builder;

static gboolean
is_full (const Builder *self)
{
  return self->tokens->len >= self->n_regular;
}

static void
add_token (Builder *self, char *text)
{
  g_ptr_array_add (self->tokens, text);
  g_hash_table_add (self->known, text);
}

/* Makes every prefix of the bytes a token, each merged from the one before and
 * a byte. Words that come earlier have the lower ranks, so in a text the
 * longest known beginning of a word is what its bytes merge to. */
static void
add_chain (Builder *self, const char *text)
{
  g_autoptr (GString) prefix = g_string_new (NULL);

  for (const guint8 *at = (const guint8 *) text; *at && !is_full (self); at++) {
    gsize length = prefix->len;

    g_string_append_unichar (prefix, runnel_byte_level_character (*at));
    if (length == 0 || g_hash_table_contains (self->known, prefix->str))
      continue;
    g_ptr_array_add (self->merges, g_strdup_printf ("%.*s %s", (int) length,
        prefix->str, prefix->str + length));
    add_token (self, g_strndup (prefix->str, prefix->len));
  }
}

static void
add_joined (Builder *self, const char *a, const char *b, const char *c)
{
  g_autofree char *text = g_strconcat (a, b, c, NULL);

  add_chain (self, text);
}

static void
add_capital (Builder *self, const char *before, const char *word,
             const char *ending)
{
  g_autofree char *text = g_strconcat (before, word, ending, NULL);
  char *first = text + strlen (before);

  *first = g_ascii_toupper (*first);
  add_chain (self, text);
}

/* As they stand behind a blank: first, so that nothing merges across. */
static void
add_words (Builder *self)
{
  g_auto (GStrv) list = g_strsplit (words, " ", -1);
  g_auto (GStrv) ends = g_strsplit (endings, " ", -1);
  char letter[3] = " a";

  for (letter[1] = 'a'; letter[1] <= 'z'; letter[1]++)
    add_chain (self, letter);
  for (letter[1] = 'A'; letter[1] <= 'Z'; letter[1]++)
    add_chain (self, letter);
  for (guint i = 0; list[i] != NULL; i++)
    add_joined (self, " ", list[i], "");
  for (guint i = 0; list[i] != NULL; i++)
    add_capital (self, " ", list[i], "");
  for (guint i = 0; list[i] != NULL; i++)
    for (guint e = 0; ends[e] != NULL && strlen (list[i]) > 3; e++)
      add_joined (self, " ", list[i], ends[e]);
  for (guint e = 0; ends[e] != NULL; e++)
    add_chain (self, ends[e]);
  for (guint i = 0; list[i] != NULL; i++) {
    add_chain (self, list[i]);
    add_capital (self, "", list[i], "");
  }
}

static void
add_spaces (Builder *self)
{
  static const char *const runs[] = { " ", "\t", "\n", "\r\n", "-", "=", "#",
      "*", "/", ".", "_" };
  static const char *const marks[] = { " (", " \"", " =", " {", " [", " -",
      ");", "()", "],", "},", "\",", "->", "==", "!=", "<=", ">=", "&&", "||",
      "::", "/*", "*/", "//", "'s", "'t", "'re", ".\n", ",\n", ";\n", ":\n" };

  for (guint i = 0; i < G_N_ELEMENTS (runs); i++) {
    g_autoptr (GString) run = g_string_new (NULL);

    for (guint n = 0; n < 32; n++)
      g_string_append (run, runs[i]);
    add_chain (self, run->str);
  }
  for (guint i = 0; i < G_N_ELEMENTS (marks); i++)
    add_chain (self, marks[i]);
}

static void
add_scripts (Builder *self)
{
  for (guint i = 0; i < G_N_ELEMENTS (blocks); i++)
    for (gunichar c = blocks[i].first; c <= blocks[i].last; c++) {
      char text[7] = { 0 };

      g_unichar_to_utf8 (c, text);
      add_chain (self, text);
    }
}

/* Words that could be: enough for any size. */
static void
add_syllables (Builder *self)
{
  g_auto (GStrv) o = g_strsplit (onsets, " ", -1);
  g_auto (GStrv) v = g_strsplit (nuclei, " ", -1);
  g_auto (GStrv) c = g_strsplit (codas, " ", -1);
  guint n_o = g_strv_length (o), n_v = g_strv_length (v);
  guint n_c = g_strv_length (c), n = n_o * n_v * n_c;

  /* 7919 is prime to all the lengths: each syllable once, well mixed. */
  for (guint64 i = 0; !is_full (self); i++) {
    guint a = i * 7919 % n, b = (i / n + 1) * (i + 104729) % n;
    g_autofree char *head = g_strconcat (" ", o[a % n_o],
        v[a / n_o % n_v], i < n ? c[a / n_o / n_v] : "", NULL);

    add_joined (self, i < n ? head + i % 2 : head,
        i < n ? "" : o[b % n_o], i < n ? "" : v[b / n_o % n_v]);
  }
}

static void
add_bytes (Builder *self)
{
  for (guint byte = 0; byte < 256; byte++) {
    char text[7] = { 0 };

    g_unichar_to_utf8 (runnel_byte_level_character (byte), text);
    add_token (self, g_strdup (text));
  }
}

static void
write_tokens (const Builder *self, RunnelGgufWriter *writer)
{
  g_autofree gint32 *types = g_new (gint32, self->tokens->len);

  for (guint i = 0; i < self->tokens->len; i++)
    types[i] = i < self->n_regular ? 1 : 3;   /* normal, control */
  for (guint i = 0; i < RUNNEL_SYNTHETIC_CONTROLS; i++)
    if (controls[i][1] != '|')
      types[self->n_regular + i] = 4;         /* user-defined */
  runnel_gguf_writer_add_string (writer, "tokenizer.ggml.model", "gpt2", -1);
  runnel_gguf_writer_add_string (writer, "tokenizer.ggml.pre", "qwen2", -1);
  runnel_gguf_writer_add_strings (writer, "tokenizer.ggml.tokens",
      (const char *const *) self->tokens->pdata, NULL, self->tokens->len);
  runnel_gguf_writer_add_int32s (writer, "tokenizer.ggml.token_type", types,
      self->tokens->len);
  runnel_gguf_writer_add_strings (writer, "tokenizer.ggml.merges",
      (const char *const *) self->merges->pdata, NULL, self->merges->len);
}

void
runnel_synthetic_vocabulary_write (RunnelGgufWriter *writer, guint n_tokens)
{
  g_autoptr (GPtrArray) tokens = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) merges = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GHashTable) known = g_hash_table_new (g_str_hash, g_str_equal);
  Builder self = { tokens, merges, known,
      n_tokens - RUNNEL_SYNTHETIC_CONTROLS };

  g_return_if_fail (n_tokens >= RUNNEL_SYNTHETIC_MIN_TOKENS);
  add_bytes (&self);
  add_words (&self);
  add_spaces (&self);
  add_scripts (&self);
  add_syllables (&self);
  for (guint i = 0; i < RUNNEL_SYNTHETIC_CONTROLS; i++)
    g_ptr_array_add (tokens, g_strdup (controls[i]));
  write_tokens (&self, writer);
  runnel_gguf_writer_add_uint32 (writer, "tokenizer.ggml.eos_token_id",
      self.n_regular + IM_END);
  runnel_gguf_writer_add_uint32 (writer, "tokenizer.ggml.padding_token_id",
      self.n_regular + END_OF_TEXT);
  runnel_gguf_writer_add_boolean (writer, "tokenizer.ggml.add_bos_token",
      FALSE);
  runnel_gguf_writer_add_string (writer, "tokenizer.chat_template", CHATML,
      -1);
}
