/* Runnel: small language models on the device, as GStreamer pipelines.
 * Copyright (C) 2026 The Runnel developers
 * SPDX-License-Identifier: MIT
 *
 * A plain main () around a fuzz target, so that every target runs in the
 * ordinary suite, with any compiler and sanitizer: over its corpus folder,
 * over its built-in seeds, and over a fixed number of mutations of both that
 * depend on nothing but the printed seed. The operations are the usual ones
 * of mutation fuzzers (bit flips, boundary values, deletions, copies,
 * splices). A crash leaves the input behind in a file.
 *
 *   fuzz-NAME [CORPUS-FOLDER | FILE]...
 *   RUNNEL_FUZZ_RUNS  mutations (20000)   RUNNEL_FUZZ_SEED  seed (1)
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_INPUT_SIZE (1u << 20)
#define MAX_GROWN_SIZE (1u << 16)

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

/* The target may define this: its seeds, NULL past the end. */
__attribute__ ((weak)) const uint8_t *runnel_fuzz_seeds (size_t i,
                                                         size_t *size);
/* The sanitizers' runtime has this. */
__attribute__ ((weak)) void __sanitizer_set_death_callback (void (*f) (void));

typedef struct
{
  uint8_t *data;
  size_t size;
} Input;

static Input *inputs;
static size_t n_inputs;

static const uint8_t *current_data;
static size_t current_size;
static char crash_name[256];

static uint64_t random_state;

/* SplitMix64 (Steele, Lea and Flood 2014). */
static uint64_t
random_next (void)
{
  uint64_t z = (random_state += 0x9e3779b97f4a7c15u);

  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static size_t
random_below (size_t limit)
{
  return limit == 0 ? 0 : (size_t) (random_next () % limit);
}

static void
write_crash (void)
{
  int fd = open (crash_name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  size_t done = 0;

  if (fd < 0)
    return;
  while (done < current_size)
    {
      ssize_t n = write (fd, current_data + done, current_size - done);
      if (n <= 0)
        break;
      done += n;
    }
  close (fd);
}

static void
on_fatal_signal (int signal_number)
{
  write_crash ();
  signal (signal_number, SIG_DFL);
  raise (signal_number);
}

static void
catch_crashes (const char *program)
{
  static const int signals[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL,
                                 SIGTRAP };
  const char *name = strrchr (program, '/');

  snprintf (crash_name, sizeof crash_name, "crash-%s",
            name != NULL ? name + 1 : program);
  if (__sanitizer_set_death_callback != NULL)
    {
      __sanitizer_set_death_callback (write_crash);
      return;
    }
  for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
    signal (signals[i], on_fatal_signal);
}

/* Runs the target on a block of exactly this size, so that a sanitizer sees
 * any read past its end. */
static void
run_one (const uint8_t *data, size_t size)
{
  uint8_t *exact = malloc (size > 0 ? size : 1);

  if (exact == NULL)
    abort ();
  if (size > 0)
    memcpy (exact, data, size);
  current_data = exact;
  current_size = size;
  LLVMFuzzerTestOneInput (exact, size);
  current_size = 0;
  free (exact);
}

static void
add_input (const uint8_t *data, size_t size)
{
  Input *more = realloc (inputs, (n_inputs + 1) * sizeof *inputs);
  uint8_t *copy = malloc (size > 0 ? size : 1);

  if (more == NULL || copy == NULL)
    abort ();
  if (size > 0)
    memcpy (copy, data, size);
  inputs = more;
  inputs[n_inputs++] = (Input) { copy, size };
}

static int
add_file (const char *path)
{
  FILE *file = fopen (path, "rb");
  uint8_t *data = malloc (MAX_INPUT_SIZE);
  size_t size;

  if (file == NULL || data == NULL)
    {
      fprintf (stderr, "%s: %s\n", path, strerror (errno));
      exit (1);
    }
  size = fread (data, 1, MAX_INPUT_SIZE, file);
  fclose (file);
  add_input (data, size);
  free (data);
  return 1;
}

/* In the order of their names: the same on every file system. */
static int
add_folder (const char *path)
{
  struct dirent **entries;
  int n = scandir (path, &entries, NULL, alphasort);
  int added = 0;

  for (int i = 0; i < n; i++)
    {
      char name[4096];
      struct stat info;

      snprintf (name, sizeof name, "%s/%s", path, entries[i]->d_name);
      if (stat (name, &info) == 0 && S_ISREG (info.st_mode))
        added += add_file (name);
      free (entries[i]);
    }
  if (n >= 0)
    free (entries);
  return added;
}

static size_t
put_boundary_value (uint8_t *data, size_t size)
{
  static const uint64_t values[] = {
    0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 100, 127, 128, 255, 256, 1000,
    1024, 4096, 32767, 32768, 65535, 65536, 0x7fffffff, 0x80000000,
    0xffffffff, 0x100000000, 0x7fffffffffffffff, 0x8000000000000000,
    0xfffffffffffffff0, 0xffffffffffffffff
  };
  static const size_t widths[] = { 1, 2, 4, 8 };
  size_t width = widths[random_below (4)];
  uint64_t value = values[random_below (sizeof values / sizeof values[0])];
  size_t at;

  if (size < width)
    return size;
  at = random_below (size - width + 1);
  for (size_t i = 0; i < width; i++)
    data[at + i] = (uint8_t) (value >> (8 * i));
  return size;
}

static size_t
delete_range (uint8_t *data, size_t size)
{
  size_t at = random_below (size);
  size_t n = 1 + random_below (size - at < 64 ? size - at : 64);

  if (size == 0)
    return 0;
  memmove (data + at, data + at + n, size - at - n);
  return size - n;
}

/* Copies up to 64 bytes of an input over or into this one. */
static size_t
copy_piece (uint8_t *data, size_t size, const Input *from, int insert)
{
  size_t start = random_below (from->size);
  size_t left = from->size - start;
  size_t n = left > 0 ? 1 + random_below (left < 64 ? left : 64) : 0;
  size_t at = random_below (size + 1);

  if (insert && size + n <= MAX_GROWN_SIZE)
    {
      memmove (data + at + n, data + at, size - at);
      size += n;
    }
  else if (n > size - at)
    n = size - at;
  if (n > 0)
    memcpy (data + at, from->data + start, n);
  return size;
}

static size_t
mutate (uint8_t *data, size_t size)
{
  const Input *other = &inputs[random_below (n_inputs)];

  switch (random_below (8))
    {
    case 0:
    case 1:
      if (size > 0)
        data[random_below (size)] ^= (uint8_t) (1u << random_below (8));
      return size;
    case 2:
      if (size > 0)
        data[random_below (size)] = (uint8_t) random_next ();
      return size;
    case 3:
      return put_boundary_value (data, size);
    case 4:
      return delete_range (data, size);
    case 5:
      return copy_piece (data, size, other, 1);
    case 6:
      return copy_piece (data, size, other, 0);
    default:
      /* Rarely: most targets read from the front and would see nothing. */
      return random_below (8) == 0 ? random_below (size + 1) : size;
    }
}

static void
run_mutations (unsigned long runs)
{
  uint8_t *data = malloc (MAX_INPUT_SIZE + MAX_GROWN_SIZE);

  if (data == NULL)
    abort ();
  for (unsigned long i = 0; i < runs; i++)
    {
      const Input *base = &inputs[random_below (n_inputs)];
      size_t size = base->size;
      size_t steps = 1 + random_below (6);

      if (size > 0)
        memcpy (data, base->data, size);
      while (steps-- > 0)
        size = mutate (data, size);
      run_one (data, size);
    }
  free (data);
}

static unsigned long
number_from_env (const char *name, unsigned long otherwise)
{
  const char *text = getenv (name);

  return text != NULL && *text != '\0' ? strtoul (text, NULL, 0) : otherwise;
}

int
main (int argc, char **argv)
{
  unsigned long runs = number_from_env ("RUNNEL_FUZZ_RUNS", 20000);
  unsigned long seed = number_from_env ("RUNNEL_FUZZ_SEED", 1);
  size_t n_corpus, size = 0;
  const uint8_t *data;

  catch_crashes (argv[0]);
  for (int i = 1; i < argc; i++)
    {
      struct stat info;

      if (stat (argv[i], &info) == 0 && S_ISREG (info.st_mode))
        add_file (argv[i]);
      else
        add_folder (argv[i]);
    }
  n_corpus = n_inputs;
  for (size_t i = 0; runnel_fuzz_seeds != NULL
                     && (data = runnel_fuzz_seeds (i, &size)) != NULL; i++)
    add_input (data, size);

  printf ("1..2\n# seed %lu\n", seed);
  for (size_t i = 0; i < n_inputs; i++)
    run_one (inputs[i].data, inputs[i].size);
  run_one (NULL, 0);
  printf ("ok 1 - %zu corpus files, %zu seeds, the empty input\n", n_corpus,
          n_inputs - n_corpus);
  fflush (stdout);

  if (n_inputs == 0)
    add_input ((const uint8_t *) "", 0);
  random_state = seed;
  run_mutations (runs);
  printf ("ok 2 - %lu mutations\n", runs);

  for (size_t i = 0; i < n_inputs; i++)
    free (inputs[i].data);
  free (inputs);
  return 0;
}
