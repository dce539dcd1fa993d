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

# Runs a command that is silent unless it fails; then the end of what it said is shown.
quietly() {
	local log
	log=$(mktemp)
	if ! "$@" >"$log" 2>&1; then
		tail -n 100 "$log" >&2
		rm -f "$log"
		return 1
	fi
	rm -f "$log"
}

# Arguments: build folder, then meson setup's. Does nothing when it is configured already; ninja sees to changes.
configure() {
	local folder=$1
	shift
	[ -f "$folder/build.ninja" ] || quietly meson setup "$folder" "$ROOT" "$@" || die "meson setup of $folder failed"
}

build() {
	configure "$@"
	say "building in $1: minutes at first, seconds later"
	quietly ninja -C "$1" || die "the build in $1 failed"
	say "built in $1"
}

# Runs meson's tests and says what ran. Arguments: folder, label of the summary ("": none), then meson test's.
# Builds what the tests need first. With $TOTAL the counts are added to that file. Status 1 when anything failed or nothing ran.
run_tests() {
	local folder=$1 label=$2 status=0 log
	shift 2
	log=$folder/meson-logs/testlog.json
	rm -f "$log"
	meson test -C "$folder" --print-errorlogs "$@" >"$folder/meson-logs/said.txt" 2>&1 || status=$?
	if [ ! -f "$log" ]; then # bad arguments, or no test of that name
		cat "$folder/meson-logs/said.txt" >&2
		: >"$log"
	elif [ $status != 0 ] || [[ " $* " == *" -v "* ]]; then
		cat "$folder/meson-logs/said.txt"
	fi
	python3 "$ROOT/scripts/results.py" ${label:+--label "$label"} ${TOTAL:+--total "$TOTAL"} "$log" || return 1
	return $status
}
