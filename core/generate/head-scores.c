/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * logit = <K c, Q q> / sqrt (d) + w · GELU (M_c c + b + M_q q), with c and q
 * the layer-normed rows of an option and of the deciding token: the shared
 * head of Decision 2.0 (vLLM Semantic Router). Our form adds the logit of
 * abstaining, v · q + b.
 */
#include "head-scores.h"

#include <math.h>

#include "../formats/decision-head-private.h"
#include "elementary.h"

#define LAYER_NORM_EPSILON 1e-5
#define LANES 8

static double
dot (const float *weights, const double *x, guint n)
{
  double lanes[LANES] = { 0 };
  guint i = 0;

  for (; i + LANES <= n; i += LANES)
    for (guint k = 0; k < LANES; k++)
      lanes[k] += weights[i + k] * x[i + k];
  for (; i < n; i++)
    lanes[i % LANES] += weights[i] * x[i];
  for (guint s = LANES / 2; s > 0; s /= 2)
    for (guint k = 0; k < s; k++)
      lanes[k] += lanes[k + s];
  return lanes[0];
}

static void
multiply (const float *matrix, const double *x, guint rows, guint columns,
          double *out)
{
  for (guint i = 0; i < rows; i++)
    out[i] = dot (matrix + (gsize) i * columns, x, columns);
}

static void
layer_norm (const float *x, const float *weight, const float *bias, guint n,
            double *out)
{
  double mean = 0, variance = 0, scale;

  for (guint i = 0; i < n; i++)
    mean += x[i];
  mean /= n;
  for (guint i = 0; i < n; i++)
    variance += (x[i] - mean) * (x[i] - mean);
  scale = 1 / sqrt (variance / n + LAYER_NORM_EPSILON);
  for (guint i = 0; i < n; i++)
    out[i] = (x[i] - mean) * scale * weight[i] + bias[i];
}

/* erf (x) = 2 / sqrt (pi) e^(-x²) Σ 2^k x^(2k+1) / (2k+1)!!, whose terms have
 * one sign (Abramowitz and Stegun, 7.1.6); from 6 on it is 1 in binary64. */
static double
error_function (double x)
{
  double term = x, sum = x;

  if (!(fabs (x) < 6))
    return x < 0 ? -1 : x > 0 ? 1 : x;
  for (guint k = 1; fabs (term) > 1e-18 * fabs (sum); k++) {
    term *= 2 * x * x / (2 * k + 1);
    sum += term;
  }
  return 0x1.20dd750429b6dp+0 * elementary_exp (-x * x) * sum;
}

static double
gelu (double x)
{
  return 0.5 * x * (1 + error_function (x * 0x1.6a09e667f3bcdp-1));
}

static double
score (RunnelDecisionHead *head, const double *candidate, const double *query,
       const double *query_mlp, double *scratch)
{
  guint d = head->head_dim, n = head->n_embd;
  double bilinear = 0, nonlinear = 0;

  multiply (head->key, candidate, d, n, scratch);
  for (guint i = 0; i < d; i++)
    bilinear += scratch[i] * query[i];
  multiply (head->candidate_mlp, candidate, d, n, scratch);
  for (guint i = 0; i < d; i++)
    nonlinear += head->scalar[i]
        * gelu (scratch[i] + head->candidate_mlp_bias[i] + query_mlp[i]);
  return bilinear / sqrt (d) + nonlinear;
}

void
runnel_head_scores (RunnelDecisionHead *head, const float *candidates, guint n,
                    const float *query, double *logits, double *ret_null)
{
  guint d = head->head_dim, n_embd = head->n_embd;
  g_autofree double *normed = g_new (double, n_embd);
  g_autofree double *keys = g_new (double, 3 * (gsize) d);
  double *query_mlp = keys + d, *scratch = keys + 2 * (gsize) d;

  layer_norm (query, head->query_norm_weight, head->query_norm_bias, n_embd,
      normed);
  multiply (head->query, normed, d, n_embd, keys);
  multiply (head->query_mlp, normed, d, n_embd, query_mlp);
  if (head->can_abstain)
    *ret_null = dot (head->null_weight, normed, n_embd) + *head->null_bias;
  for (guint i = 0; i < n; i++) {
    layer_norm (candidates + (gsize) i * n_embd, head->candidate_norm_weight,
        head->candidate_norm_bias, n_embd, normed);
    logits[i] = score (head, normed, keys, query_mlp, scratch);
  }
}

void
runnel_head_norm (const float *weight, guint n_embd, double epsilon,
                  float *rows, guint n_rows)
{
  for (guint row = 0; row < n_rows; row++) {
    float *x = rows + (gsize) row * n_embd;
    double squares = 0, scale;

    for (guint i = 0; i < n_embd; i++)
      squares += (double) x[i] * x[i];
    scale = 1 / sqrt (squares / n_embd + epsilon);
    for (guint i = 0; i < n_embd; i++)
      x[i] = (float) (x[i] * scale * weight[i]);
  }
}
