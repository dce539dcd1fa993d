/*
 * The kernels of digest.cu in plain C: what they must compute, bit for bit. Written from the layout in verify_device.h,
 * not from the kernels.
 */
#ifndef TESTS_UNIT_VERIFY_REFERENCE_H
#define TESTS_UNIT_VERIFY_REFERENCE_H

#include "shim/verdict/verify_device.h"

/*
 * One job: `data` is where the host has the byte of address job->start, `baseline` where it has job->baseline. Fills
 * all of *ret_result but the sequence.
 */
void reference_job(const struct verify_job *job, const uint8_t *data, uint8_t *baseline, const uint8_t *keys,
                   struct verify_result *ret_result);

/* Bytes of a baseline for [start, end). */
uint64_t reference_baseline_bytes(uint64_t start, uint64_t end, uint32_t mode);

#endif
