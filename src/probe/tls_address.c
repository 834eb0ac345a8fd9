#include "probe/tls_address.h"

/* No thread's segment or distance is larger. */
static const uint64_t far_bytes = (uint64_t)1 << 30;

/* User space is below this on both architectures, five-level page tables included. */
static const uint64_t address_end = (uint64_t)1 << 56;

static const uint64_t control_block_bytes = 16;

static bool is_segment_plausible(const bp_tls_segment *segment) {
    uint64_t alignment = segment->alignment;
    return segment->bytes <= far_bytes && alignment <= far_bytes &&
           (alignment & (alignment - (alignment != 0))) == 0;
}

bool bp_tls_executable_offset(bp_tls_arch arch, const bp_tls_segment *segment, uint64_t value,
                              uint64_t symbol_bytes, int64_t *ret_offset) {
    if (!is_segment_plausible(segment) || value > segment->bytes ||
        symbol_bytes > segment->bytes - value) {
        return false;
    }
    uint64_t mask = segment->alignment > 1 ? segment->alignment - 1 : 0;
    if (arch == BP_TLS_AARCH64) {
        /* The block starts at the first place after the TCB that is congruent to p_vaddr. */
        uint64_t start = control_block_bytes + ((segment->address - control_block_bytes) & mask);
        *ret_offset = (int64_t)(start + value);
    } else {
        uint64_t below = segment->bytes + ((0 - segment->address - segment->bytes) & mask);
        *ret_offset = (int64_t)value - (int64_t)below;
    }
    return true;
}

bool bp_tls_thread_pointer(bp_tls_arch arch, uint64_t descriptor, uint64_t descriptor_bytes,
                           uint64_t *ret_thread_pointer) {
    uint64_t distance = arch == BP_TLS_AARCH64 ? descriptor_bytes : 0;
    if (descriptor == 0 || descriptor >= address_end || distance > far_bytes) {
        return false;
    }
    *ret_thread_pointer = descriptor + distance;
    return true;
}

bool bp_tls_counter_address(bp_tls_arch arch, uint64_t thread_pointer, int64_t slot, bool has_slot,
                            int64_t offset, uint64_t *ret_address) {
    const int64_t far = (int64_t)far_bytes;
    if (has_slot) {
        bool is_right_side =
            arch == BP_TLS_AARCH64 ? slot >= (int64_t)control_block_bytes : slot < 0;
        if (!is_right_side || slot < -far || slot > far) {
            return false;
        }
    }
    if (offset < -far || offset > far || thread_pointer == 0 || thread_pointer >= address_end) {
        return false;
    }
    uint64_t address = thread_pointer + (uint64_t)(has_slot ? slot : 0) + (uint64_t)offset;
    if (address == 0 || address >= address_end || address % sizeof(uint64_t) != 0) {
        return false;
    }
    *ret_address = address;
    return true;
}
