#!/bin/sh
# Spoils event files and reads them; see fuzz_events.c.
# Usage: tests/fuzz/run_events.sh [SECONDS]; MODE and CC as for make.
set -e
cd "$(dirname "$0")/../.."
seconds=${1:-5} mode=${MODE:-asan} cc=${CC:-gcc} sanitize=
[ "$mode" = asan ] && sanitize=-fsanitize=address,undefined
out=build/$mode/tests/fuzz
make MODE="$mode" CC="$cc" "build/$mode/libptmem.a"
mkdir -p "$out"
$cc -O1 -g -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Wno-unused-parameter -I. -Isrc $sanitize \
	tests/fuzz/fuzz_events.c "build/$mode/libptmem.a" -o "$out/fuzz_events"
"$out/fuzz_events" "$seconds" tests/golden/ptmem_*.events tests/golden/massif_default.events \
	tests/golden/massif_realloc.events
