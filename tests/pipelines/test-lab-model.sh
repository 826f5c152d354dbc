#!/bin/sh
# SPDX-License-Identifier: MIT
# A second prompt sees the first (C35), with a model that is up to it: the
# greedy answer to "What is my name?" contains the name. The model is the file
# that RUNNEL_LAB_MODEL names.
ask () {
  printf "$1" | gst-launch-1.0 -q fdsrc ! lmchat framing=line keep-turns=true \
    ! lmtokenize model="$RUNNEL_LAB_MODEL" ! lmprefill \
    ! lmdecode max-tokens=40 temperature=0 ! lmdetokenize ! fdsink | cat
}

echo 1..1
first=$(ask 'My name is Bob.\n')
both=$(ask 'My name is Bob.\nWhat is my name?\n')
second=${both#"$first"}
echo "# $first | $second" | tr '\n' ' '
echo
case "$both" in
  "$first"*Bob*)
    case "$second" in
      *Bob*) echo 'ok 1 - the second answer knows the name'; exit ;;
    esac ;;
esac
echo 'not ok 1 - the second answer knows the name'
