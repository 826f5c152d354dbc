/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include <glib.h>
#include <math.h>
#include <string.h>

#include "formats/tensor.h"

/* --- halves --- */

static void
test_half_exact (void)
{
  for (guint h = 0; h < 65536; h++) {
    int exponent = h >> 10 & 31;
    double sign = h & 0x8000 ? -1 : 1, mantissa = h & 1023;
    float value = runnel_half_to_float (h);

    if (exponent == 31 && mantissa != 0) {
      g_assert_true (isnan (value));
      g_assert_true (isnan (runnel_half_to_float (
          runnel_float_to_half (value))));
      continue;
    }
    if (exponent == 31)
      g_assert_true (isinf (value) && (signbit (value) != 0) == (h >> 15));
    else if (exponent == 0)
      g_assert_cmpfloat (value, ==, sign * ldexp (mantissa, -24));
    else
      g_assert_cmpfloat (value, ==,
          sign * ldexp (1024 + mantissa, exponent - 25));
    g_assert_cmphex (runnel_float_to_half (value), ==, h);
  }
}

/* Between each two neighbours: the middle goes to the even one, and what lies
 * next to the middle to the nearer one. 65520 counts as between the largest
 * half and infinity. */
static void
test_half_rounding (void)
{
  for (guint low = 0; low < 0x7c00; low++) {
    guint high = low + 1, even = low & 1 ? high : low;
    float above = high == 0x7c00 ? 65536.0f : runnel_half_to_float (high);
    float middle = (runnel_half_to_float (low) + above) / 2;

    g_assert_cmphex (runnel_float_to_half (middle), ==, even);
    g_assert_cmphex (runnel_float_to_half (-middle), ==, even | 0x8000);
    g_assert_cmphex (runnel_float_to_half (nextafterf (middle, 0)), ==, low);
    g_assert_cmphex (runnel_float_to_half (nextafterf (middle, INFINITY)), ==,
        high);
  }
  g_assert_cmphex (runnel_float_to_half (3e38f), ==, 0x7c00);
  g_assert_cmphex (runnel_float_to_half (INFINITY), ==, 0x7c00);
  g_assert_cmphex (runnel_float_to_half (-1e-40f), ==, 0x8000);
}

static void
test_bfloat (void)
{
  g_assert_cmpfloat (runnel_bfloat_to_float (0x3f80), ==, 1);
  g_assert_cmpfloat (runnel_bfloat_to_float (0xc049), ==, -3.140625f);
  g_assert_true (isinf (runnel_bfloat_to_float (0x7f80)));
}

/* --- blocks --- */

/* Two blocks of made-up bytes; byte i is i 73 + 41 + (i / 8) 29 modulo 256,
 * with d = 0.05 and m or dmin = -0.175 as halves. The answers (weights at 0,
 * half a block, the last of the first and of the second block, and the hash
 * of all float32 bits) were computed by the gguf package 0.19 from PyPI. */
static const struct {
  RunnelTensorType type;
  float values[4];
  const char *sha256;
  int d, m;   /* where the halves lie, -1 for none */
} answers[] = {
  { RUNNEL_TENSOR_Q4_0, { 0x1.332p-3f, 0x1.332p-3f, -0x1.ffep-3f, 0x1.998p-5f },
    "18449ac304311291e07ff4c2ab3c365b09a76aa1f1af8726df679eb5c232586b",
    0, -1 },
  { RUNNEL_TENSOR_Q4_1, { 0x1.e63p-2f, 0x1.98p-6f, 0x1.b3p-2f, 0x1.7fdp-2f },
    "e61f8a87cc3d4ebaff92f89d31c0b5ad54e3206f3a28ae900ab1ba23be8ac40e",
    0, 2 },
  { RUNNEL_TENSOR_Q5_0,
    { 0x1.7fe8p-1f, 0x1.4cb8p-1f, 0x1.332p-2f, -0x1.998p-5f },
    "80f6a0b42384fd43c1509e9caa9e0530402cf050b73034cdefa93433b0f09602",
    0, -1 },
  { RUNNEL_TENSOR_Q5_1,
    { 0x1.5318p+0f, 0x1.065p+0f, 0x1.2648p-1f, -0x1.338p-4f },
    "dd4c0f4e777a3f98b1b9b8cab52b901be93570092fecbed5adb0f8ff009019ee",
    0, 2 },
  { RUNNEL_TENSOR_Q8_0,
    { -0x1.b97ep+1f, -0x1.8981p+2f, 0x1.332p-2f, 0x1.1988p+1f },
    "2223c61eaef45adfd1c61d1e578ac50f96b87bff57f4c6bc4c502a8346a31307",
    0, -1 },
  { RUNNEL_TENSOR_Q2_K,
    { 0x1.b324p+0f, 0x1.bffcp+1f, 0x1.599cp+1f, 0x1.0cep+1f },
    "8d24c856c0765a1b241eb43adc2bb06a957691945ee17003c969403b951fdac6",
    80, 82 },
  { RUNNEL_TENSOR_Q3_K,
    { 0x1.ffep-3f, 0x1.5984p+1f, 0x1.5984p+1f, 0x1.6cb6p+1f },
    "824881fb2557b76995dc1959d00f6ab45b2a7e00cedf07074d78768aa641b26e",
    108, -1 },
  { RUNNEL_TENSOR_Q4_K,
    { 0x1.199dp+2f, 0x1.16cb8p+4f, 0x1.94c58p+3f, 0x1.8990cp+4f },
    "71fc9faa2cfdc84d3033b19a476db5e392e691729b56bbdcc6ed684c204c2a6b",
    0, 2 },
  { RUNNEL_TENSOR_Q5_K,
    { 0x1.165a4p+4f, 0x1.1b5ccp+5f, 0x1.18008p+3f, 0x1.954dap+5f },
    "79df8127157fe4ea34fa8bf44c256746a20bcb49f09d529e98de51382611e04f",
    0, 2 },
  { RUNNEL_TENSOR_Q6_K,
    { 0x1.09ef6p+5f, -0x1.1feep+2f, -0x1.efe1p+2f, 0x1.ffep+3f },
    "c1313f3b620ddbffac0e915e449876090756b50dd4c5814659ab2b890568045c",
    208, -1 },
};

static void
put_half (guint8 *blocks, gsize block_bytes, int at, guint16 half)
{
  for (gsize block = 0; at >= 0 && block < 2; block++) {
    blocks[block * block_bytes + at] = half & 255;
    blocks[block * block_bytes + at + 1] = half >> 8;
  }
}

static void
test_known_answers (void)
{
  for (gsize i = 0; i < G_N_ELEMENTS (answers); i++) {
    const RunnelTensorTypeInfo *info =
        runnel_tensor_type_info (answers[i].type);
    gsize size = 2 * info->block_bytes, n = 2 * info->block_elements;
    /* One byte off, because blocks need no alignment. */
    g_autofree guint8 *memory = g_malloc (size + 1);
    g_autofree float *values = g_new (float, n);
    g_autofree char *hash = NULL;
    guint8 *blocks = memory + 1;

    for (gsize b = 0; b < size; b++)
      blocks[b] = b * 73 + 41 + b / 8 * 29;
    put_half (blocks, info->block_bytes, answers[i].d, 0x2a66);
    put_half (blocks, info->block_bytes, answers[i].m, 0xb19a);
    runnel_blocks_dequantize (answers[i].type) (values, blocks, n);
    g_assert_cmpfloat (values[0], ==, answers[i].values[0]);
    g_assert_cmpfloat (values[n / 4], ==, answers[i].values[1]);
    g_assert_cmpfloat (values[n / 2 - 1], ==, answers[i].values[2]);
    g_assert_cmpfloat (values[n - 1], ==, answers[i].values[3]);
    for (gsize v = 0; v < n; v++) {
      guint32 bits;

      memcpy (&bits, &values[v], 4);
      bits = GUINT32_TO_LE (bits);
      memcpy (&values[v], &bits, 4);
    }
    hash = g_compute_checksum_for_data (G_CHECKSUM_SHA256,
        (const guchar *) values, n * sizeof *values);
    g_assert_cmpstr (hash, ==, answers[i].sha256);
  }
}

static void
test_floats (void)
{
  static const guint8 bytes[] = { 0x00, 0x00, 0x80, 0x3f, 0xdb, 0x0f, 0x49,
    0xc0 };
  float values[4];

  runnel_blocks_dequantize (RUNNEL_TENSOR_F32) (values, bytes, 2);
  g_assert_cmpfloat (values[0], ==, 1);
  g_assert_cmpfloat (values[1], ==, -3.14159274f);
  runnel_blocks_dequantize (RUNNEL_TENSOR_BF16) (values, bytes, 4);
  g_assert_cmpfloat (values[1], ==, 1);
  g_assert_cmpfloat (values[3], ==, -3.140625f);
  runnel_blocks_dequantize (RUNNEL_TENSOR_F16) (values, bytes, 4);
  g_assert_cmpfloat (values[1], ==, 1.875f);
}

/* Row 9 of 10 rows of 96 columns: in the second tile, and with half a group
 * of 64 at the end. The codes of a row count up by column. */
static void
test_tiled (void)
{
  static const struct {
    RunnelTensorType type;
    guint64 bytes;             /* of two tiles */
    float first, last;         /* columns 1 and 95 */
  } cases[] = {
    { RUNNEL_TENSOR_INT4_32, 2 * 3 * 144, -3.5f, 3.5f },
    { RUNNEL_TENSOR_INT4_32_OFFSET, 2 * 3 * 160, 0.75f, 7.75f },
    { RUNNEL_TENSOR_INT4_32_CENTRED, 2 * 3 * 160, -3.25f, 3.75f },
    { RUNNEL_TENSOR_INT4_64, 2 * (2 * 16 + 3 * 128), -3.5f, 3.5f },
    { RUNNEL_TENSOR_INT4_64_OFFSET, 2 * (2 * 32 + 3 * 128), 0.75f, 7.75f },
    { RUNNEL_TENSOR_INT4_64_CENTRED, 2 * (2 * 32 + 3 * 128), -3.25f, 3.75f },
    { RUNNEL_TENSOR_INT8_32, 2 * 3 * 272, 0.5f, -16.5f },
    { RUNNEL_TENSOR_INT8_32_OFFSET, 2 * 3 * 288, 0.75f, -16.25f },
    { RUNNEL_TENSOR_INT8_64, 2 * (2 * 16 + 3 * 256), 0.5f, -16.5f },
    { RUNNEL_TENSOR_INT8_64_OFFSET, 2 * (2 * 32 + 3 * 256), 0.75f, -16.25f },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    RunnelTileForm form;
    guint64 bytes;
    g_autofree guint8 *tiles = NULL;
    float values[96];
    guint8 *p;

    g_assert_true (runnel_tensor_type_bytes (cases[i].type, 96, 10, &bytes));
    g_assert_cmpuint (bytes, ==, cases[i].bytes);
    g_assert_true (runnel_blocks_tile_form (cases[i].type, &form));
    tiles = g_malloc0 (bytes);
    p = tiles + bytes / 2;
    for (int c = 0; c < 96; c += 32) {
      if (c % form.group == 0) {
        put_half (p, 0, 2, 0x3800);               /* d of row 1: 0.5 */
        if (form.offset)
          put_half (p, 0, 18, 0x3400);            /* m: 0.25 */
        p += 2 * 8 * (form.offset ? 2 : 1);
      }
      for (int k = 0; k < 32; k++) {
        if (form.bits == 8)
          p[32 * (k / 4) + 4 + k % 4] = (c + k) * 2 + (c + k == 1 ? -1 : 33);
        else
          p[32 * (k % 16 / 4) + 4 + k % 4] |= k % 16 << (k < 16 ? 0 : 4);
      }
      p += 32 * form.bits;
    }
    runnel_tiles_dequantize (values, tiles, form, 96, 9);
    g_assert_cmpfloat (values[1], ==, cases[i].first);
    g_assert_cmpfloat (values[95], ==, cases[i].last);
  }
  g_assert_false (runnel_tensor_type_bytes (RUNNEL_TENSOR_INT8_32,
      G_MAXUINT64 / 64 * 32, 1, &(guint64) { 0 }));
}

static void
test_types (void)
{
  for (guint type = 0; type < 300; type++) {
    const RunnelTensorTypeInfo *info = runnel_tensor_type_info (type);

    g_assert_true ((info != NULL) == (runnel_blocks_dequantize (type) != NULL));
    g_assert_true (info == NULL || (info->name != NULL &&
            info->block_elements > 0 && info->block_bytes > 0));
  }
  g_assert_cmpstr (runnel_tensor_type_info (RUNNEL_TENSOR_Q4_1)->name, ==,
      "Q4_1");
  g_assert_null (runnel_tensor_type_info (G_MAXUINT));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/blocks/tiled", test_tiled);
  g_test_add_func ("/blocks/half-exact", test_half_exact);
  g_test_add_func ("/blocks/half-rounding", test_half_rounding);
  g_test_add_func ("/blocks/bfloat", test_bfloat);
  g_test_add_func ("/blocks/known-answers", test_known_answers);
  g_test_add_func ("/blocks/floats", test_floats);
  g_test_add_func ("/blocks/types", test_types);
  return g_test_run ();
}
