# shellcheck shell=bash
# Sourced by the scripts next to it: the root, one way to speak, and the environment that builds and tests run in.

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
VENV=$ROOT/.venv
BUILD=$ROOT/build

say() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

die() {
	say "$*"
	exit 1
}

# The venv's python3 is the one that meson, the tests and the demo find. A CUDA stub library that a toolkit put on the
# search path, or a shim that the caller already preloads, would be tested in place of ours.
enter() {
	PATH=$VENV/bin:$PATH
	export PATH
	unset LD_PRELOAD PYTHONHOME CUCONST_OPTIONS CUCONST_STATUS
}

# Configures (once) and builds; what ninja says is shown only when it fails. Arguments: folder, then meson setup's.
build() {
	local folder=$1 log
	shift
	log=$(mktemp)
	if ! { { [ -f "$folder/build.ninja" ] || meson setup "$folder" "$ROOT" "$@"; } && ninja -C "$folder"; } >"$log" 2>&1
	then
		tail -n 100 "$log" >&2
		rm -f "$log"
		die "the build in $folder failed"
	fi
	rm -f "$log"
	say "built in $folder"
}

# Runs meson's tests and says what ran. Arguments: folder, label of the summary ("": none), then meson test's.
# With $TOTAL the counts are added to that file. Status 1 when anything failed or nothing ran.
run_tests() {
	local folder=$1 label=$2 status=0 log
	shift 2
	log=$folder/meson-logs/testlog.json
	rm -f "$log"
	meson test -C "$folder" --no-rebuild --print-errorlogs "$@" >"$folder/meson-logs/said.txt" 2>&1 || status=$?
	if [ ! -f "$log" ]; then # bad arguments, or no test of that name
		cat "$folder/meson-logs/said.txt" >&2
		: >"$log"
	elif [ $status != 0 ] || [[ " $* " == *" -v "* ]]; then
		cat "$folder/meson-logs/said.txt"
	fi
	python3 "$ROOT/scripts/results.py" ${label:+--label "$label"} ${TOTAL:+--total "$TOTAL"} "$log" || return 1
	return $status
}
