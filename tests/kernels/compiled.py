#!/usr/bin/env python3
"""What ptxas makes of generated kernels, against what they wrote and against their PTX: compiled.py BUILD [FIRST [COUNT [SM...]]].

Needs ptxas ($CUDA_HOME or /usr/local/cuda); ends with 77 where there is none. By default, as in CI: 2,000 kernels for sm_90, and a quarter of them for
three more machines, then kernels with parameter blocks of 4 KB and 32 KB and with thousands of parameters. Ends with 1 if a store was missed.
"""
import json
import os
import subprocess
import sys
import tempfile

PTXAS = os.path.join(os.environ.get('CUDA_HOME', '/usr/local/cuda'), 'bin', 'ptxas')
CHUNK = 500


def run(*argv, **how):
    return subprocess.run([str(a) for a in argv], text=True, **how)


def assemble(ptx, cubin, sm):
    run(PTXAS, '-arch=sm_%s' % sm, ptx, '-o', cubin, check=True)
    return cubin


def chunk(build, folder, first, count, machines):
    """Runs `count` kernels on the software GPU and holds both analyses against the log; then the analyses against each other."""
    ptx = os.path.join(folder, 'k.ptx')
    with open(ptx, 'w') as out:
        run(build + '/ptx_differ', 'print', first, count, stdout=out, check=True)
    cubins = [assemble(ptx, os.path.join(folder, 'sm_%s.cubin' % sm), sm) for sm in machines]
    truth = run(build + '/ptx_truth', first, count, *cubins)
    differ = run(build + '/ptx_differ', 'check', first, count, *cubins)
    return truth.returncode or differ.returncode or values_chunk(build, folder, first, count, machines)


def values_chunk(build, folder, first, count, machines):
    """The same for kernels in which parameters decide, and answers for some values of them."""
    ptx = os.path.join(folder, 'v.ptx')
    with open(ptx, 'w') as out:
        run(build + '/values_truth', 'print', first, count, stdout=out, check=True)
    cubins = [assemble(ptx, os.path.join(folder, 'v_%s.cubin' % sm), sm) for sm in machines]
    return run(build + '/values_truth', first, count, *cubins).returncode


def wide_kernel(name, params, stored):
    """A kernel that stores through each of some of its many 64-bit parameters."""
    text = '.visible .entry %s(%s)\n{\n\t.reg .b64 %%rd<%d>;\n\t.reg .b32 %%r<2>;\n\tmov.u32 %%r1, 5;\n' % (
        name, ', '.join('.param .u64 p%d' % i for i in range(params)), len(stored) + 1)
    for k, i in enumerate(stored):
        text += '\tld.param.u64 %%rd%d, [p%d];\n\tst.global.u32 [%%rd%d], %%r1;\n' % (k, i, k)
    return text + '\tret;\n}\n'


def block_kernel(name, size, indexed):
    """One with a structure of so many bytes, and a pointer at its end, or one that is chosen at run time."""
    text = ('.visible .entry %s(.param .align 8 .b8 s[%d], .param .u32 n)\n{\n\t.reg .b64 %%rd<4>;\n\t.reg .b32 %%r<3>;\n'
            '\tld.param.u32 %%r1, [n];\n') % (name, size)
    if indexed:
        text += '\tmov.b64 %rd1, s;\n\tmad.wide.u32 %rd1, %r1, 8, %rd1;\n\tld.param.u64 %rd2, [%rd1];\n'
    else:
        text += '\tld.param.u64 %%rd2, [s+%d];\n' % (size - 8)
    return text + '\tst.global.u32 [%rd2], %r1;\n\tret;\n}\n'


def stored_slots(tool, image, kernel):
    found = [json.loads(line) for line in run(tool, 'scan', '--format=json', '--kernel', kernel, image, capture_output=True).stdout.splitlines()]
    assert len(found) == 1, (image, kernel, found)
    slots = {s['offset'] // 8 for p in found[0]['params'] for s in p['slots'] if s['store']}
    return found[0]['verdict'], len(found[0]['params']), slots


def large_blocks(build, folder):
    """4 KB is what old machines and toolkits take, 32,764 bytes what sm_70 and later do with PTX 8.1."""
    tool = os.path.join(build, '..', '..', 'tools', 'cuconst')
    many = [7, 511, 512, 2000, 4000]
    kernels = {
        'few': (wide_kernel('few', 500, [0, 499]), 500, {0, 499}),
        'many': (wide_kernel('many', 4090, many), 4090, set(many)),
        'block4': (block_kernel('block4', 4080, False), 2, {509}),
        'block32': (block_kernel('block32', 32752, False), 2, {4093}),
        'index32': (block_kernel('index32', 32752, True), 2, set(range(4094))),
    }
    ptx, faults = os.path.join(folder, 'wide.ptx'), 0
    with open(ptx, 'w') as out:
        out.write('.version 8.1\n.target sm_80\n.address_size 64\n' + ''.join(k[0] for k in kernels.values()))
    images = [ptx] + [assemble(ptx, os.path.join(folder, 'wide_%s.cubin' % sm), sm) for sm in ('80', '90', '100')]
    for image in images:
        for name, (_, params, right) in kernels.items():
            verdict, count, slots = stored_slots(tool, image, name)
            good = count == params and (slots >= right if name == 'index32' else (verdict, slots) == ('ok', right))
            if not good:
                print('%s of %s: %s, %d parameters, %d slots' % (name, os.path.basename(image), verdict, count, len(slots)))
            faults += not good
    print('%d kernels with large parameter blocks, %d wrong' % (len(images) * len(kernels), faults))
    return faults


def main():
    build = sys.argv[1]
    if not os.access(PTXAS, os.X_OK):
        print('skipped: no ptxas at', PTXAS)
        return 77
    first, count = (int(sys.argv[2]) if len(sys.argv) > 2 else 1), (int(sys.argv[3]) if len(sys.argv) > 3 else 2000)
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        for at in range(first, first + count, CHUNK):
            machines = sys.argv[4:] or (['80', '90', '100', '120'] if at == first else ['90'])
            faults += chunk(build, folder, at, min(CHUNK, first + count - at), machines)
            sys.stdout.flush()
        faults += large_blocks(build, folder)
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
