#!/usr/bin/env python3
"""What library_survey --times=FILE wrote: survey_times.py FILE...

For all files together: kernels and their CPU time, and of those with up to 100 KB of code how many took more than 1 ms, p99, p99.9 and the slowest;
each by the first run of a kernel, and by the best of three where the first took more than 1 ms.
"""
import sys


def quantile(sorted_times, share):
    return sorted_times[min(len(sorted_times) - 1, int(share * len(sorted_times)))]


def tell(what, times):
    times = sorted(times)
    above = sum(t > 1 for t in times)
    print('%s: %d kernels, %.1f s, %d above 1 ms (%.2f %%), %d above 20 ms; median %.2f, p99 %.2f, p99.9 %.2f, slowest %.2f ms' % (
        what, len(times), sum(times) / 1000, above, 100 * above / len(times), sum(t > 20 for t in times),
        quantile(times, .5), quantile(times, .99), quantile(times, .999), times[-1]))


def main():
    rows = []
    for name in sys.argv[1:]:
        with open(name) as file:
            rows += [(int(size), float(first), float(best)) for _, size, first, best in map(str.split, file)]
    small = [row for row in rows if row[0] <= 100 * 1024]
    for what, some in ('all', rows), ('up to 100 KB', small):
        tell(what + ', first run', [row[1] for row in some])
        tell(what + ', best of three', [row[2] for row in some])


if __name__ == '__main__':
    main()
