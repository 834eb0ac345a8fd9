#include "support/crash_samples.h"

#include <signal.h>
#include <string.h>

const char sample_crash_session[BP_ID_BYTES] = "00112233445566778899aabbccddeeff";

const bp_crash_backtrace sample_crash_backtrace = {.reason = "no libdw"};

bp_crash_page *sample_crash_page(void) {
    static const char maps[] =
        "55d0c8a00000-55d0c8a01000 r--p 00000000 08:01 4711       /usr/bin/viewer\n"
        "55d0c8a01000-55d0c8a02000 r-xp 00001000 08:01 4711       /usr/bin/viewer\n"
        "7ffd5a0f0000-7ffd5a111000 rw-p 00000000 00:00 0          [stack]\n";
    static bp_crash_page page;
    memset(&page, 0, sizeof page);
    bp_crash_page_init(&page, sample_crash_session);
    page.is_begun = 1;
    page.pid = 4711;
    page.tid = 4712;
    page.at = (bp_instant){.monotonic_ns = 5000000000, .wall_ns = 1795330000123456789};
    page.signal = SIGSEGV;
    page.code = 1;
    page.sender_pid = page.sender_uid = page.system_call = -1;
    memcpy(page.thread_name, "decoder)\xff", sizeof "decoder)\xff");
    page.arch = BP_CRASH_ARCH_X86_64;
    page.register_count = 21;
    for (uint32_t i = 0; i < page.register_count; i++) {
        page.registers[i] = 0x1000 + i;
    }
    page.registers[7] = 0x7ffd5a110000;
    page.registers[16] = 0x55d0c8a01234;
    page.thread_count = 2;
    page.threads[0] = (bp_crash_thread){.tid = 4711,
                                        .state = BP_CRASH_THREAD_BLOCKED,
                                        .name = "viewer",
                                        .stack_pointer = 0x7ffd5a100000,
                                        .program_counter = 0x55d0c8a01100,
                                        .stack_bytes = 0x40};
    page.threads[1] = (bp_crash_thread){.tid = 4713, .state = BP_CRASH_THREAD_RUNNING};
    page.stacks_bytes = 0x40;
    page.module_count = 1;
    page.modules[0].start = 0x55d0c8a00000;
    memcpy(page.modules[0].build_id, "0123abcd", sizeof "0123abcd");
    page.stack_start = 0x7ffd5a10ff80;
    page.stack_bytes = 0x1080;
    memset(page.stack, 0x5a, (size_t)page.stack_bytes);
    memcpy(page.maps, maps, sizeof maps - 1);
    page.maps_bytes = sizeof maps - 1;
    page.check = bp_crash_page_check(&page);
    return &page;
}
