#include "platform/linux/perf_records.h"

#include <string.h>

/* linux/perf_event.h, which other systems do not have. */
enum {
    header_bytes = 8,
    record_mmap = 1,
    record_lost = 2,
    record_comm = 3,
    record_sample = 9,
    misc_mode_mask = 7,
    misc_mode_kernel = 1,
    misc_exec = 1 << 13,
    abi_64_bits = 2
};

const bp_perf_registers bp_perf_registers_x86_64 = {
    .mask = 0xff01ff, /* AX BX CX DX SI DI BP SP IP, R8 to R15 */
    .count = 17,
    .stack_pointer = 7,
    .program_counter = 16,
    .numbers = {0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15}};

const bp_perf_registers bp_perf_registers_aarch64 = {
    .mask = 0x1ffffffff, /* X0 to X29, LR, SP, PC */
    .count = 33,
    .stack_pointer = 31,
    .program_counter = 32,
    .numbers = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
                17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32}};

const bp_perf_registers *bp_perf_registers_here(void) {
#if defined(__aarch64__)
    return &bp_perf_registers_aarch64;
#elif defined(__x86_64__) && defined(__LP64__)
    return &bp_perf_registers_x86_64;
#else /* unsupported: no stack is unwound from registers on another processor */
    return NULL;
#endif
}

bp_perf_cursor bp_perf_forward(const void *data, size_t data_bytes, uint64_t tail, uint64_t head) {
    return (bp_perf_cursor){.data = data,
                            .data_bytes = data_bytes,
                            .at = tail,
                            .end = head,
                            .is_damaged = head - tail > data_bytes};
}

bp_perf_cursor bp_perf_backward(const void *data, size_t data_bytes, uint64_t head) {
    return (bp_perf_cursor){
        .data = data, .data_bytes = data_bytes, .at = head, .end = head + data_bytes};
}

static void copy_out(const bp_perf_cursor *cursor, void *out, size_t byte_count) {
    size_t from = (size_t)(cursor->at & (cursor->data_bytes - 1));
    size_t first = cursor->data_bytes - from < byte_count ? cursor->data_bytes - from : byte_count;
    memcpy(out, cursor->data + from, first);
    memcpy((unsigned char *)out + first, cursor->data, byte_count - first);
}

size_t bp_perf_next(bp_perf_cursor *cursor, unsigned char record[BP_PERF_RECORD_BYTES]) {
    uint64_t left = cursor->end - cursor->at;
    uint16_t size;
    if (cursor->is_damaged || left < header_bytes) {
        return 0;
    }
    copy_out(cursor, record, header_bytes);
    memcpy(&size, record + 6, sizeof size);
    if (size < header_bytes || size % 8 != 0 || size > left) {
        cursor->is_damaged = true;
        return 0;
    }
    copy_out(cursor, record, size);
    cursor->at += size;
    return size;
}

/* The bytes of a record that are left to take. */
typedef struct scan {
    const unsigned char *next, *end;
} scan;

static bool take(scan *rest, void *out, size_t byte_count) {
    if ((size_t)(rest->end - rest->next) < byte_count) {
        return false;
    }
    memcpy(out, rest->next, byte_count);
    rest->next += byte_count;
    return true;
}

static bool take_registers(scan *rest, const bp_perf_registers *set, bp_perf_record *record) {
    uint64_t abi, value;
    if (!take(rest, &abi, sizeof abi)) {
        return false;
    }
    for (unsigned i = 0; abi != 0 && i < set->count; i++) {
        if (!take(rest, &value, sizeof value)) {
            return false;
        }
        record->registers[set->numbers[i]] = value;
    }
    record->has_registers = abi == abi_64_bits;
    return true;
}

/* As many bytes as were asked for, and then how many of them are the stack's. */
static bool take_stack(scan *rest, bp_perf_record *record) {
    uint64_t asked, copied = 0;
    if (!take(rest, &asked, sizeof asked) || asked > (size_t)(rest->end - rest->next)) {
        return false;
    }
    record->stack = rest->next;
    rest->next += asked;
    if (asked > 0 && !take(rest, &copied, sizeof copied)) {
        return false;
    }
    record->stack_bytes = (size_t)copied;
    return copied <= asked;
}

bool bp_perf_parse(const unsigned char *bytes, size_t byte_count, const bp_perf_registers *set,
                   bp_perf_record *ret_record) {
    scan rest = {bytes, bytes + byte_count};
    uint32_t type;
    uint16_t misc, size;
    uint64_t id;
    bp_perf_record record = {.kind = BP_PERF_OTHER};
    bool is_whole = take(&rest, &type, sizeof type) && take(&rest, &misc, sizeof misc) &&
                    take(&rest, &size, sizeof size) && size == byte_count;
    if (is_whole && type == record_lost) {
        record.kind = BP_PERF_LOST;
        is_whole = take(&rest, &id, sizeof id) && take(&rest, &record.lost, sizeof record.lost);
    } else if (is_whole && type == record_mmap) {
        record.kind = BP_PERF_MAPPED;
    } else if (is_whole && type == record_comm && (misc & misc_exec) != 0) {
        record.kind = BP_PERF_EXEC;
        is_whole = take(&rest, &record.pid, sizeof record.pid) && byte_count >= 2 * header_bytes;
        memcpy(&record.time_ns, bytes + byte_count - sizeof record.time_ns,
               is_whole ? sizeof record.time_ns : 0); /* it has the time at its end */
    } else if (is_whole && type == record_sample) {
        record.kind = BP_PERF_SAMPLE;
        record.is_kernel = (misc & misc_mode_mask) == misc_mode_kernel;
        is_whole = take(&rest, &record.pid, sizeof record.pid) &&
                   take(&rest, &record.tid, sizeof record.tid) &&
                   take(&rest, &record.time_ns, sizeof record.time_ns) &&
                   take_registers(&rest, set, &record) && take_stack(&rest, &record);
    }
    if (is_whole) {
        *ret_record = record;
    }
    return is_whole;
}
