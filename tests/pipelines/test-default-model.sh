#!/bin/sh
# Runnel: small language models on the device, as GStreamer pipelines.
# Copyright (C) 2026 The Runnel developers
# SPDX-License-Identifier: MIT
#
# Launch lines with the default model, which RUNNEL_DEFAULT_MODEL names: what
# comes out is language, and the same by every way.
set -u
M=${RUNNEL_DEFAULT_MODEL:?names the default model}
n=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# check NAME: the last command's status in $status, its messages in $tmp/err.
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

printf 'The capital of France is' | gst-launch-1.0 -q fdsrc ! lmtokenize framing=stream model=$M ! lmprefill ! lmdecode max-tokens=8 temperature=0 ! lmdetokenize ! fdsink >"$tmp/france" 2>"$tmp/err" &&
  grep -q Paris "$tmp/france"
status=$?
check "the capital of France is Paris"

echo "What is the capital of Italy?" | gst-launch-1.0 -q fdsrc ! lmgenerate model=$M framing=stream max-tokens=30 ! fdsink >"$tmp/italy" 2>"$tmp/err" &&
  [ -s "$tmp/italy" ]
status=$?
check "a question from standard input"

gst-launch-1.0 -q lmprompt text="Name three rivers of France." ! lmchat ! lmtokenize model=$M ! lmprefill ! lmdecode max-tokens=60 temperature=0 ! lmdetokenize ! fdsink >"$tmp/rivers" 2>"$tmp/err" &&
  grep -q Loire "$tmp/rivers"
status=$?
check "the Loire is a river of France"

gst-launch-1.0 -q lmprompt text="Name three rivers of France." ! lmgenerate model=$M max-tokens=60 temperature=0 ! fdsink >"$tmp/fused" 2>"$tmp/err" &&
  cmp "$tmp/rivers" "$tmp/fused" 2>>"$tmp/err"
status=$?
check "the same through lmgenerate"

gst-launch-1.0 -q lmprompt text="Name a river." ! lmchat ! lmtokenize model=$M ! lmprefill ! tee name=t  t. ! queue ! lmdecode seed=1 max-tokens=24 ! lmdetokenize ! filesink location="$tmp/one"  t. ! queue ! lmdecode seed=2 max-tokens=24 ! lmdetokenize ! filesink location="$tmp/two" 2>"$tmp/err" &&
  gst-launch-1.0 -q lmprompt text="Name a river." ! lmchat ! lmtokenize model=$M ! lmprefill ! lmdecode seed=2 max-tokens=24 ! lmdetokenize ! filesink location="$tmp/alone" 2>>"$tmp/err" &&
  cmp "$tmp/two" "$tmp/alone" 2>>"$tmp/err" && ! cmp -s "$tmp/one" "$tmp/two"
status=$?
check "two seeds behind a tee, one as alone"
echo "1..$n"
