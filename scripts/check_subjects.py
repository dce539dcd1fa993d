#!/usr/bin/env python3
"""Commit subjects are `area: imperative`, at most 72 characters, no full stop, the body apart.

    check_subjects.py [REVISIONS]              default: those not on origin/main, else the last 50
    check_subjects.py --message-file FILE      one message, as the commit-msg hook has it
"""
import pathlib
import re
import subprocess
import sys

import checks

SUBJECT = re.compile(r"^[a-z0-9_.][a-z0-9_./+, -]{0,30}: [^ ].*[^.]$")
LONGEST = 72
NOT_IMPERATIVE = re.compile(r"^(\w+ed|\w+ing|adds|fixes|removes|makes|changes|updates|uses|moves)\b", re.I)
IMPERATIVE_ANYWAY = {"embed", "shed", "need", "feed", "seed", "speed", "bring", "string", "ring", "ping", "proceed", "exceed"}


def wrong(message):
    lines = message.split("\n")
    subject = lines[0]
    if subject.startswith(("Merge ", "Revert ", "fixup! ", "squash! ")):
        return ""
    if not SUBJECT.match(subject):
        return "is not `area: imperative` (lower-case area, no full stop)"
    if len(subject) > LONGEST:
        return f"is {len(subject)} characters long; {LONGEST} at most"
    first = subject.split(": ", 1)[1].split()[0]
    if NOT_IMPERATIVE.match(first) and first.lower() not in IMPERATIVE_ANYWAY:
        return f"does not begin with an imperative: {first}"
    if len(lines) > 1 and lines[1].strip():
        return "is not followed by an empty line"
    return ""


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=checks.ROOT, capture_output=True, text=True, check=False)


def messages(arguments):
    if arguments[:1] == ["--message-file"]:
        text = pathlib.Path(arguments[1]).read_text(encoding="utf-8")
        return [("message", "\n".join(line for line in text.split("\n") if not line.startswith("#")).strip())]
    known = git("rev-parse", "--verify", "--quiet", "origin/main").returncode == 0
    revisions = arguments or (["origin/main..HEAD"] if known else ["-50", "HEAD"])
    log = git("log", "--no-merges", "-z", "--format=%h %B", *revisions)
    if log.returncode:
        checks.skip(f"no git history here: {log.stderr.strip()}")
    return [tuple(entry.split(" ", 1)) for entry in log.stdout.split("\0") if entry.strip()]


def main():
    found = messages(sys.argv[1:])
    problems = [f"{name}: {message.splitlines()[0]!r} {wrong(message)}" for name, message in found if wrong(message)]
    return checks.report(problems, f"{len(found)} commit subjects")


if __name__ == "__main__":
    sys.exit(main())
