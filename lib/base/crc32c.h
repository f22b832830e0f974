/* CRC32C (Castagnoli, RFC 3720 appendix B.4). */
#ifndef ZC_BASE_CRC32C_H
#define ZC_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues from crc (0 to start). Uses SSE4.2 or ARMv8 CRC where the processor has it. */
uint32_t zc_crc32c(uint32_t crc, const void *data, size_t len);
/* The same without such an instruction; apart, so that tests can compare the two. */
uint32_t zc_crc32c_table(uint32_t crc, const void *data, size_t len);

#endif
