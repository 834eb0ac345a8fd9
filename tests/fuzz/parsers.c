/*
 * A libFuzzer target for what reads text and bytes that somebody else wrote: the JSON scanner, the
 * texts under /proc, ELF notes, and what the macOS kernel copies out of a process or counts. The
 * first byte of an input chooses the parser.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/utf8.h"
#include "fuzz/require.h"
#include "json/json.h"
#include "json/member.h"
#include "json/tree_reader.h"
#include "model/condition.h"
#include "model/machine_threads.h"
#include "platform/darwin/convert.h"
#include "platform/linux/build_id.h"
#include "platform/linux/machine_text.h"
#include "platform/linux/proc_text.h"
#include "platform/linux/thread_text.h"
#include "process/elf_object.h"
#include "process/thread_pointers.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t byte_count);

/* What the patterns of conditions are compiled with has these, which no condition asks for. */
extern const unsigned char bp_builtin_rules[];
extern const size_t bp_builtin_rules_bytes;
const unsigned char bp_builtin_rules[1] = {0};
const size_t bp_builtin_rules_bytes = 0;

static const size_t output_max_bytes = (size_t)4 << 20;

/* A text that was laid out once stays as it is; any bytes make a string that is good JSON. */
static void check_json(const char *text, size_t byte_count) {
    bp_buffer once, twice, string;
    bp_json_tree *tree;
    bp_buffer_init(&once, output_max_bytes);
    bp_buffer_init(&twice, output_max_bytes);
    bp_buffer_init(&string, output_max_bytes);
    if (bp_json_reformat(text, byte_count, &once, NULL) == BUGPACK_OK) {
        require(bp_json_reformat(bp_buffer_text(&once), once.size, &twice, NULL) == BUGPACK_OK);
        require(once.size == twice.size && memcmp(once.data, twice.data, once.size) == 0);
        require(bp_json_tree_read(text, byte_count, &tree, NULL) == BUGPACK_OK);
        (void)bp_json_tree_text(tree, "a");
        bp_json_tree_free(tree);
    } else {
        require(once.size == 0);
    }
    bp_json_field field = {.key = "\"a\""}, of_line = field;
    bool is_object = once.size > 0 && once.data[0] == '{';
    bp_json_line_find(text, byte_count, &of_line, 1);
    require((bp_json_find(text, byte_count, &field, 1, NULL) == BUGPACK_OK) == is_object);
    require(!is_object || of_line.value.text == field.value.text);
    bp_buffer_clear(&twice);
    (void)bp_json_token_text(&of_line.value, &twice); /* of a malformed line it may be any bytes */
    require(!is_object || bp_utf8_is_valid(bp_buffer_text(&twice), twice.size));
    bp_buffer_clear(&twice);
    require(bp_json_append_string(&string, text, byte_count) == BUGPACK_OK);
    require(bp_json_reformat(bp_buffer_text(&string), string.size, &twice, NULL) == BUGPACK_OK);
    bp_buffer_release(&once);
    bp_buffer_release(&twice);
    bp_buffer_release(&string);
}

static void check_counters(const char *text, size_t byte_count) {
    bp_proc_stat stat;
    uint64_t size, resident;
    int64_t number;
    (void)bp_proc_parse_stat(text, byte_count, &stat);
    (void)bp_proc_parse_statm(text, byte_count, &size, &resident);
    (void)bp_proc_parse_number(text, byte_count, &number);
    (void)bp_proc_find_number(text, byte_count, "Uid", 1, &size);
}

static void check_tables(const char *text, size_t byte_count) {
    bp_resource_limit limits[32];
    const char *path;
    size_t path_bytes;
    (void)bp_proc_parse_limits(text, byte_count, limits, 32);
    if (bp_proc_find_cgroup(text, byte_count, NULL, &path, &path_bytes)) {
        require(path >= text && path + path_bytes <= text + byte_count);
    }
}

static void check_map(const char *text, size_t byte_count) {
    bp_proc_scan scan = {text, text + byte_count};
    bp_proc_map map;
    if (!bp_proc_take_map(&scan, &map)) {
        return;
    }
    char *path = malloc(map.path_bytes + 1);
    require(path != NULL);
    size_t length = bp_proc_unescape_path(map.path, map.path_bytes, path);
    require(bp_proc_deleted_path_length(path, length) <= length);
    free(path);
}

typedef struct file_bytes {
    const char *bytes;
    size_t byte_count;
} file_bytes;

static bool read_bytes(void *context, uint64_t offset, void *out, size_t byte_count) {
    const file_bytes *file = context;
    if (offset > file->byte_count || byte_count > file->byte_count - offset) {
        return false;
    }
    memcpy(out, file->bytes + offset, byte_count);
    return true;
}

static void check_elf(const char *bytes, size_t byte_count) {
    file_bytes file = {bytes, byte_count};
    char id[BP_BUILD_ID_TEXT_BYTES];
    require(!bp_build_id_read(read_bytes, &file, id) || strlen(id) < sizeof id);
}

/* What another process may have mapped: every table of it can lie. */
static void check_object(const char *bytes, size_t byte_count) {
    bp_elf_object elf;
    bp_libc_layout layout;
    Elf64_Sym symbol;
    uint64_t slot = 0;
    int64_t addend = 0;
    int fd = memfd_create("object", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, bytes, byte_count) == (ssize_t)byte_count);
    (void)bp_elf_memory_bytes(fd);
    if (bp_elf_object_read(fd, &elf) == BP_ELF_OK) {
        (void)bp_elf_find_symbol(&elf, "mallctl", &symbol);
        (void)bp_elf_find_tls_slot(&elf, &slot, &addend);
        (void)bp_elf_code_address(&elf, &slot);
        (void)bp_libc_layout_read(&elf, &layout);
    }
    (void)close(fd);
}

/* Whatever the files held: what is not measured is 0, and the thread is good JSON. */
static void check_host_thread(const char *text, size_t byte_count) {
    static const char head[] = "{\"threads\": [";
    bp_cpu_list affinity;
    bp_machine_thread thread = {.tgid = 1, .read = {.tid = 1, .affinity = &affinity}};
    bp_buffer json, laid_out;
    (void)bp_thread_parse_stat(text, byte_count, 100, &thread.read);
    (void)bp_thread_parse_schedstat(text, byte_count, &thread.read);
    (void)bp_thread_parse_status(text, byte_count, &thread.read);
    (void)bp_thread_parse_io(text, byte_count, &thread.read);
    (void)bp_thread_parse_smaps_rollup(text, byte_count, &thread.read);
    (void)bp_thread_parse_sched(text, byte_count, &thread.read);
#define REQUIRE(constant, group, key, kernel_key)                                                  \
    require(bp_thread_has(&thread.read, BP_GROUP_##group) ||                                       \
            thread.read.counters[BP_COUNTER_##constant] == 0);
    BP_THREAD_COUNTERS(REQUIRE)
#undef REQUIRE
    bp_buffer_init(&json, output_max_bytes);
    bp_buffer_init(&laid_out, output_max_bytes);
    bp_machine_print_thread(&thread, &json);
    require(json.status == BUGPACK_OK);
    memcpy(json.data, " ", 1); /* in place of the comma */
    (void)bp_buffer_append_text(&laid_out, head);
    (void)bp_buffer_append(&laid_out, json.data, json.size);
    (void)bp_buffer_append_text(&laid_out, bp_machine_tail);
    bp_buffer_clear(&json);
    require(bp_json_reformat(laid_out.data, laid_out.size, &json, NULL) == BUGPACK_OK);
    bp_buffer_release(&json);
    bp_buffer_release(&laid_out);
}

static void check_host_rest(const char *text, size_t byte_count) {
    bp_cpu_list list;
    bp_pressure pressure;
    bp_machine_figure figure, period;
    (void)bp_cpu_list_parse(text, byte_count, &list);
    (void)bp_machine_parse_pressure(text, byte_count, &pressure);
    (void)bp_machine_parse_figure(text, byte_count, &figure);
    (void)bp_machine_find_figure(text, byte_count, "nr_periods", 1000, &figure);
    (void)bp_machine_parse_cpu_max(text, byte_count, &figure, &period);
}

/* Arguments lie in the memory, end at its end or with NUL, and never reach behind the count. */
static void check_procargs(const char *memory, size_t byte_count) {
    const char *arguments;
    size_t bytes;
    int32_t count;
    if (!bp_darwin_parse_procargs(memory, byte_count, &arguments, &bytes)) {
        return;
    }
    memcpy(&count, memory, sizeof count);
    const char *end = memory + byte_count;
    require(arguments >= memory + sizeof count && arguments <= end);
    require(bytes <= (size_t)(end - arguments));
    size_t ended_count = 0;
    for (size_t i = 0; i < bytes; i++) {
        ended_count += arguments[i] == '\0';
    }
    bool is_cut = bytes > 0 && arguments[bytes - 1] != '\0';
    require(ended_count + is_cut <= (size_t)count);
    require(!is_cut || arguments + bytes == end);
}

/* Any numbers of the kernel's give a time that only grows, an age within its bounds, and a name. */
static void check_darwin_numbers(const char *bytes, size_t byte_count) {
    struct {
        uint64_t ticks, more, hertz;
        bp_darwin_age age;
    } in = {0};
    memcpy(&in, bytes, byte_count < sizeof in ? byte_count : sizeof in);
    in.age.has_awake = (in.ticks & 1) != 0;
    bp_darwin_tick tick = {.numer = (uint32_t)in.more, .denom = (uint32_t)in.hertz};
    (void)bp_darwin_tick_of(in.hertz, &tick);
    uint64_t sum = bp_darwin_add(in.ticks, in.more);
    require(sum >= in.ticks && sum >= in.more);
    require(bp_darwin_ticks_to_ns(sum, tick) >= bp_darwin_ticks_to_ns(in.ticks, tick));
    uint64_t age_ns = bp_darwin_age_ns(&in.age);
    require(!in.age.has_awake ||
            (age_ns >= in.age.awake_ns &&
             age_ns <= bp_darwin_add(in.age.awake_ns, in.age.asleep_since_boot_ns)));
    (void)bp_darwin_time_value_ns((int32_t)in.ticks, (int32_t)in.more);
    char name[64];
    bp_darwin_copy_name(name, bytes, byte_count);
    require(memchr(name, '\0', sizeof name) != NULL);
}

/* A condition is refused with a sentence, or judges any series and line. */
static void check_condition(const char *text, size_t byte_count) {
    char *terminated = strndup(text, byte_count);
    bp_condition *condition = NULL;
    bp_condition_truth truth;
    bugpack_error error = BUGPACK_ERROR_INIT;
    require(terminated != NULL);
    if (bp_condition_new(terminated, &condition, &error) != BUGPACK_OK) {
        require(error.message[0] != '\0');
        free(terminated);
        return;
    }
    for (uint64_t i = 1; i < 200; i++) {
        const bp_condition_sample sample = {.taken_ns = i << 30,
                                            .due_ns = i << 30,
                                            .cpu_ns = i * i << 20,
                                            .rss_bytes = {true, i << 20},
                                            .thread_count = {true, i % 50},
                                            .file_count = {i % 2 == 0, UINT64_MAX - i},
                                            .state = "RSDTtZI"[i / 30]};
        (void)bp_condition_look(condition, &sample, &truth);
    }
    (void)bp_condition_look_at_line(condition, text, byte_count, 1, &truth);
    bp_condition_free(condition);
    free(terminated);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t byte_count) {
    static void (*const checks[])(const char *,
                                  size_t) = {check_json,      check_counters, check_tables,
                                             check_map,       check_elf,      check_host_thread,
                                             check_host_rest, check_procargs, check_darwin_numbers,
                                             check_object,    check_condition};
    if (byte_count == 0) {
        return 0;
    }
    /* A copy of exactly this size, so that a read behind its end is seen. */
    size_t text_bytes = byte_count - 1;
    char *text = malloc(text_bytes > 0 ? text_bytes : 1);
    require(text != NULL);
    memcpy(text, data + 1, text_bytes);
    checks[data[0] % (sizeof checks / sizeof checks[0])](text, text_bytes);
    free(text);
    return 0;
}
