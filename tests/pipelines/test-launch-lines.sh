#!/bin/sh
# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
#
# Launch lines as people type them: those of the README, and the example of
# every element's documentation. $1 is a program that writes a model, $2 the
# folder of the elements' sources, $3 a program that writes a draft.
set -u
sources=$2
n=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
M=$tmp/model.gguf
D=$tmp/draft.gguf
"$1" "$M"
"$3" "$D" "$M"

# check NAME: the last command's status in $status, its output in $tmp.
check () {
  n=$((n + 1))
  if [ "$status" -eq 0 ] && [ ! -s "$tmp/err" ]; then
    echo "ok $n - $1"
  else
    echo "not ok $n - $1"
    echo "# status $status"
    sed 's/^/# /' "$tmp/err"
  fi
}

gst-launch-1.0 -q lmprompt text="Name three rivers of France." ! lmchat ! lmtokenize model=$M ! lmprefill ! lmdecode max-tokens=60 temperature=0 ! lmdetokenize ! fdsink >"$tmp/rivers" 2>"$tmp/err"
status=$?
check "rivers of France"

gst-launch-1.0 -q lmprompt text="Name three rivers of France." ! lmgenerate model=$M max-tokens=60 temperature=0 ! fdsink >"$tmp/fused" 2>"$tmp/err" &&
  cmp "$tmp/rivers" "$tmp/fused" 2>>"$tmp/err"
status=$?
check "the same through lmgenerate"

echo "What is the capital of Italy?" | gst-launch-1.0 -q fdsrc ! lmgenerate model=$M framing=stream ! fdsink >"$tmp/italy" 2>"$tmp/err"
status=$?
check "capital of Italy"

gst-launch-1.0 -q lmprompt text="Name three rivers of France." ! lmchat ! lmtokenize model=$M ! lmprefill ! tee name=t  t. ! queue ! lmdecode seed=1 max-tokens=60 ! lmdetokenize ! filesink location="$tmp/one"  t. ! queue ! lmdecode seed=2 max-tokens=60 ! lmdetokenize ! filesink location="$tmp/two" 2>"$tmp/err"
status=$?
check "two seeds behind a tee"

for seed in 1 2; do
  gst-launch-1.0 -q lmprompt text="Name three rivers of France." ! lmchat ! lmtokenize model=$M ! lmprefill ! lmdecode seed=$seed max-tokens=60 ! lmdetokenize ! filesink location="$tmp/alone" 2>"$tmp/err" &&
    { [ $seed = 1 ] && cmp "$tmp/alone" "$tmp/one" || cmp "$tmp/alone" "$tmp/two"; } 2>>"$tmp/err"
  status=$?
  check "seed $seed alone gives the same"
done

gst-launch-1.0 -q lmprompt text="Name three rivers of France." ! lmchat ! lmtokenize model=$M ! lmdraft draft=$D ! lmprefill ! lmdecode max-tokens=60 temperature=0 draft-adaptive=false ! lmdetokenize ! fdsink >"$tmp/drafted" 2>"$tmp/err" &&
  cmp "$tmp/rivers" "$tmp/drafted" 2>>"$tmp/err"
status=$?
check "the same with a draft"

gst-launch-1.0 -q lmprompt text="Name three rivers of France." ! lmchat ! lmtokenize model=$M ! lmdraft draft=$D ! lmprefill ! tee name=t  t. ! queue ! lmdecode seed=1 max-tokens=60 draft-adaptive=false ! lmdetokenize ! filesink location="$tmp/one-drafted"  t. ! queue ! lmdecode seed=2 max-tokens=60 draft-adaptive=false ! lmdetokenize ! filesink location="$tmp/two-drafted" 2>"$tmp/err" &&
  { cmp "$tmp/one" "$tmp/one-drafted" && cmp "$tmp/two" "$tmp/two-drafted"; } 2>>"$tmp/err"
status=$?
check "the same behind a tee, a draft in each branch"

# The example of each element: what is between |[ and ]| of its source.
for source in "$sources"/lm*.c; do
  sed -n '/^ \* |\[$/,/^ \* \]|$/p' "$source" |
    sed '/^ \* |\[$/d; /^ \* \]|$/d; s/^ \* //
         s/\$MODEL/$M/g; s/\$DRAFT/$D/g' >"$tmp/line"
  [ -s "$tmp/line" ] || continue
  (. "$tmp/line") >"$tmp/out" 2>"$tmp/err.raw"
  status=$?
  # The second reply of a tee example goes to stderr, as do tracer records.
  if [ $status -eq 0 ]; then : >"$tmp/err"; else mv "$tmp/err.raw" "$tmp/err"; fi
  check "example of $(basename "$source" .c)"
done

# Nothing of ours is left when a pipeline has gone.
GST_TRACERS=leaks GST_DEBUG=GST_TRACER:7 GST_DEBUG_FILE="$tmp/trace" \
  gst-launch-1.0 -q lmprompt text="hello" ! lmgenerate model=$M max-tokens=8 ! fakesink >"$tmp/out" 2>"$tmp/err"
status=$?
if grep 'object-alive, ' "$tmp/trace" | grep -vq 'new format'; then
  grep 'object-alive, ' "$tmp/trace" | head -20 >>"$tmp/err"
  status=1
fi
check "no leaks"

# gst-inspect is the manual: a property and what it is.
for element in lmprompt lmchat lmtokenize lmprefill lmdecode lmdetokenize lmgenerate; do
  gst-inspect-1.0 $element >"$tmp/out" 2>"$tmp/err"
  status=$?
  check "gst-inspect-1.0 $element"
done
for property in max-tokens temperature top-k top-p min-p repetition-penalty presence-penalty frequency-penalty penalty-window seed logit-bias stop stop-tokens ignore-eos top-logprobs overflow-policy n-keep error-policy backend threads kernels; do
  gst-inspect-1.0 lmdecode 2>"$tmp/err" | grep -q "^  $property "
  status=$?
  [ $status -eq 0 ] || echo "no $property" >>"$tmp/err"
  gst-inspect-1.0 lmdecode | grep -A1 "^  $property " | grep -q 'changeable\( only\)\? in' || { status=1; echo "$property: mutability not said" >>"$tmp/err"; }
  check "lmdecode has $property"
done
echo "1..$n"
