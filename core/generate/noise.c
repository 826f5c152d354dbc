/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 */
#include "noise.h"

#include "elementary.h"

void
runnel_noise_block (uint64_t seed, uint64_t position, uint32_t block,
                    uint32_t words[4])
{
  uint32_t k0 = (uint32_t) seed, k1 = (uint32_t) (seed >> 32);
  uint32_t c0 = block, c1 = (uint32_t) position;
  uint32_t c2 = (uint32_t) (position >> 32), c3 = 0;

  for (int round = 0; round < 10; round++) {
    const uint64_t p0 = UINT64_C (0xd2511f53) * c0;
    const uint64_t p1 = UINT64_C (0xcd9e8d57) * c2;

    c0 = (uint32_t) (p1 >> 32) ^ c1 ^ k0;
    c1 = (uint32_t) p1;
    c2 = (uint32_t) (p0 >> 32) ^ c3 ^ k1;
    c3 = (uint32_t) p0;
    k0 += UINT32_C (0x9e3779b9);
    k1 += UINT32_C (0xbb67ae85);
  }
  words[0] = c0;
  words[1] = c1;
  words[2] = c2;
  words[3] = c3;
}

uint32_t
runnel_noise_word (uint64_t seed, uint64_t position, uint32_t token)
{
  uint32_t words[4];

  runnel_noise_block (seed, position, token / 4, words);
  return words[token % 4];
}

double
runnel_noise_uniform (uint32_t word)
{
  return ((double) word + 0.5) * 0x1p-32;
}

double
runnel_noise_gumbel (uint32_t word)
{
  return -elementary_log (-elementary_log (runnel_noise_uniform (word)));
}
