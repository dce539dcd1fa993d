#!/usr/bin/env python3
"""Generated kernels, compiled for many machines, against the analysis: fuzz.py PATHS_OF FIRST_SEED LAST_SEED [SECONDS]. By hand: needs nvcc.

PATHS_OF is the program of that name in the build folder. Ends with 1 if a store was missed.
"""
import collections
import os
import random
import subprocess
import sys
import tempfile
import time

from generate import generate

ARCHS = ['75', '80', '86', '89', '90', '100', '103', '110', '120', '121']
OPTIONS = [[], [], ['-O1'], ['-O0'], ['-O2'], ['-maxrregcount=24'], ['-maxrregcount=16']]
BIN = os.path.join(os.environ.get('CUDA_HOME', '/usr/local/cuda'), 'bin')


def run(*argv):
    return subprocess.run(argv, capture_output=True, text=True)


def check(answers, truth, tally, where):
    for line in answers.splitlines():
        name, reason, *slots = line.split()
        written, pointers = truth[name]
        stored = {i for i, s in enumerate(slots) if s[0] == 'S'}
        missed = sorted(set(written) - stored)
        tally['kernels'] += 1
        tally['reason ' + reason] += 1
        tally['pointer slots'] += len(pointers)
        tally['stored slots'] += len(written)
        if reason == 'clear':
            tally['extra, clear'] += len(set(pointers) & stored - set(written))
            tally['pointer slots, clear'] += len(pointers)
        if missed and reason == 'clear':
            tally['MISSED'] += 1
            print('MISSED', where, name, missed, line, flush=True)
        elif missed:
            tally['not stored, but unclear'] += 1


def main():
    paths_of, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    end = time.time() + float(sys.argv[4]) if len(sys.argv) > 4 else float('inf')
    tally = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        source, ptx, cubin = (os.path.join(folder, 'k.' + e) for e in ('cu', 'ptx', 'cubin'))
        for seed in range(first, last):
            if time.time() > end:
                break
            text, truth = generate(seed)
            rnd = random.Random(seed)
            with open(source, 'w') as file:
                file.write(text)
            debug = rnd.random() < .1
            made = run(BIN + '/nvcc', '-w', '-ptx', '-arch=compute_75', *(['-G'] if debug else rnd.choice([[], [], ['-use_fast_math']])),
                       source, '-o', ptx)
            if made.returncode:
                print('does not compile', seed, made.stderr[:300])
                tally['not compiled'] += 1
                continue
            for arch in rnd.sample(ARCHS, 5):
                option = ['-g', '-O0'] if debug else rnd.choice(OPTIONS)
                made = run(BIN + '/ptxas', '-arch=sm_' + arch, *option, ptx, '-o', cubin)
                if made.returncode:
                    print('not assembled', seed, arch, option, made.stderr[:200])
                    tally['not assembled'] += 1
                    continue
                answer = run(paths_of, cubin)
                if answer.returncode:
                    print('FAILED', seed, arch, option, answer.stderr[:300])
                    tally['MISSED'] += 1
                    continue
                check(answer.stdout, truth, tally, 'seed %d sm_%s %s' % (seed, arch, ' '.join(option)))
            tally['files'] += 1
    for key, count in sorted(tally.items()):
        print(key + ':', count)
    return 1 if tally['MISSED'] else 0


if __name__ == '__main__':
    sys.exit(main())
