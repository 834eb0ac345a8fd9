#include "model/stacks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/fields.h"
#include "model/metadata.h"

void bp_stack_place_release(bp_stack_place *place) {
    for (size_t i = 0; i < place->inlined_count; i++) {
        free(place->inlined[i].symbol);
        free(place->inlined[i].demangled);
        free(place->inlined[i].source);
    }
    free(place->inlined);
    free(place->symbol);
    free(place->demangled);
    free(place->source);
}

void bp_stacks_release(bp_stacks *stacks) {
    for (size_t i = 0; i < stacks->module_count; i++) {
        free(stacks->modules[i].path);
    }
    for (size_t i = 0; i < stacks->place_count; i++) {
        bp_stack_place_release(&stacks->places[i]);
    }
    for (size_t i = 0; i < stacks->python_frame_count; i++) {
        free(stacks->python_frames[i].function);
        free(stacks->python_frames[i].source);
    }
    free(stacks->python_frames);
    free(stacks->exception_type);
    free(stacks->modules);
    free(stacks->places);
    free(stacks->frames);
    free(stacks->threads);
    *stacks = (bp_stacks){0};
}

size_t bp_stacks_count(const bp_stacks *stacks, bp_stack_state state) {
    size_t count = 0;
    for (size_t i = 0; i < stacks->thread_count; i++) {
        count += stacks->threads[i].state == state;
    }
    return count;
}

uint64_t bp_stacks_longest_stop_us(const bp_stacks *stacks) {
    uint64_t longest_ns = 0;
    for (size_t i = 0; i < stacks->thread_count; i++) {
        const bp_stack_thread *thread = &stacks->threads[i];
        longest_ns = thread->stopped_ns > longest_ns ? thread->stopped_ns : longest_ns;
    }
    return (longest_ns + 999) / 1000;
}

bool bp_stacks_describe_loss(const bp_stacks *stacks, char out[BP_STACKS_LOSS_BYTES]) {
    const char *plural = stacks->undescribed_count == 1 ? "" : "es";
    if (stacks->lacked_memory) {
        (void)snprintf(out, BP_STACKS_LOSS_BYTES,
                       "out of memory: frames, names or lines may be missing");
    } else {
        (void)snprintf(out, BP_STACKS_LOSS_BYTES,
                       "there was no time for the names or lines of %zu address%s",
                       stacks->undescribed_count, plural);
    }
    return stacks->lacked_memory || stacks->undescribed_count > 0;
}

static const char *const state_names[] = {
    [BP_STACK_BLOCKED] = "blocked", [BP_STACK_STOPPED] = "stopped", [BP_STACK_CRASHED] = "crashed",
    [BP_STACK_RUNNING] = "running", [BP_STACK_MOVED] = "moved",     [BP_STACK_UNREAD] = "unread"};

static const bp_stack_module *module_of(const bp_stacks *stacks, const bp_stack_place *place) {
    return place->module == BP_STACK_NO_MODULE ? NULL : &stacks->modules[place->module];
}

bp_frame_text bp_stacks_frame_text(const bp_stacks *stacks, const bp_stack_frame *frame,
                                   size_t index) {
    const bp_stack_place *place = &stacks->places[frame->place];
    const bp_stack_module *module = module_of(stacks, place);
    bp_frame_text text = {.symbol = place->symbol,
                          .demangled = place->demangled,
                          .address = place->address,
                          .source = place->source,
                          .line = place->line > 0 ? (uint64_t)place->line : 0,
                          .is_signal = place->is_signal,
                          .is_by_frame_pointer = frame->is_by_frame_pointer};
    if (module != NULL) {
        text.module = module->path;
        text.file_address = place->address - module->start + module->file_start;
    }
    if (index < place->inlined_count) {
        const bp_stack_inlined *inlined = &place->inlined[index];
        text.symbol = inlined->symbol;
        text.demangled = inlined->demangled;
        text.source = inlined->source;
        text.line = inlined->line > 0 ? (uint64_t)inlined->line : 0;
        text.is_inlined = true;
    }
    return text;
}

static bp_frame_text python_text(const bp_python_frame *frame) {
    return (bp_frame_text){.symbol = frame->function,
                           .source = frame->source,
                           .line = frame->line > 0 ? (uint64_t)frame->line : 0,
                           .is_python = true};
}

void bp_stacks_sign(const bp_stacks *stacks, const bp_stack_thread *thread,
                    bp_signature_stack *signed_stack) {
    for (size_t i = 0; i < thread->frame_count; i++) {
        const bp_stack_frame *frame = &stacks->frames[thread->first_frame + i];
        const bp_frame_text text =
            bp_stacks_frame_text(stacks, frame, stacks->places[frame->place].inlined_count);
        bp_signature_take(signed_stack, &text);
    }
    for (size_t i = 0; i < thread->python_count; i++) {
        const bp_frame_text text = python_text(&stacks->python_frames[thread->first_python + i]);
        bp_signature_take(signed_stack, &text);
    }
}

static void add_frame(bp_json *json, const bp_stacks *stacks, const bp_stack_frame *frame,
                      size_t index) {
    const bp_stack_place *place = &stacks->places[frame->place];
    const bp_stack_module *module = module_of(stacks, place);
    const bp_frame_text text = bp_stacks_frame_text(stacks, frame, index);
    bp_json_object_begin(json, NULL);
    bp_model_add_hex(json, "address", place->address);
    if (module != NULL) {
        bp_json_add_text(json, "module", module->path);
        bp_model_add_hex(json, "offset", place->address - module->start);
        if (module->file_start != 0) {
            bp_model_add_hex(json, "file_address", text.file_address);
        }
        bp_model_add_known_text(json, "build_id", module->build_id);
    }
    bp_json_add_text(json, "symbol", text.symbol);
    bp_json_add_text(json, "demangled", text.demangled);
    bp_model_add_known_uint(json, "symbol_offset", !text.is_inlined && text.symbol != NULL,
                            place->symbol_offset);
    if (text.source != NULL) {
        bp_json_add_text(json, "source", text.source);
        bp_json_add_uint(json, "line", text.line);
    }
    bp_model_add_flag(json, "inlined", text.is_inlined);
    bp_model_add_flag(json, "signal_frame", text.is_signal);
    bp_model_add_flag(json, "by_frame_pointer", text.is_by_frame_pointer);
    bp_json_object_end(json);
}

void bp_stacks_add_frames(const bp_stacks *stacks, const bp_stack_thread *thread, bp_json *json) {
    bp_json_add_bool(json, "complete", thread->reason[0] == '\0');
    bp_json_array_begin(json, "frames");
    for (size_t i = 0; i < thread->frame_count; i++) {
        const bp_stack_frame *frame = &stacks->frames[thread->first_frame + i];
        for (size_t index = 0; index <= stacks->places[frame->place].inlined_count; index++) {
            add_frame(json, stacks, frame, index);
        }
    }
    bp_json_array_end(json);
}

static bool has_frames(const bp_stack_thread *thread) {
    return thread->state == BP_STACK_BLOCKED || thread->state == BP_STACK_STOPPED ||
           thread->state == BP_STACK_CRASHED;
}

void bp_stacks_add_python(const bp_stacks *stacks, const bp_stack_thread *thread, bp_json *json) {
    if (thread->python_count > 0) {
        bp_json_array_begin(json, "python_frames");
        for (size_t i = 0; i < thread->python_count; i++) {
            const bp_python_frame *frame = &stacks->python_frames[thread->first_python + i];
            bp_json_object_begin(json, NULL);
            bp_json_add_text(json, "function", frame->function);
            bp_json_add_text(json, "source", frame->source);
            bp_model_add_known_uint(json, "line", frame->line > 0, (uint64_t)frame->line);
            bp_json_object_end(json);
        }
        bp_json_array_end(json);
    }
    bp_json_add_text(json, "python_reason", thread->python_reason);
}

static void add_thread(bp_json *json, const bp_stacks *stacks, const bp_stack_thread *thread) {
    bp_json_object_begin(json, NULL);
    bp_json_add_uint(json, "tid", thread->tid);
    bp_model_add_name(json, "name", thread->name, sizeof thread->name);
    bp_json_add_text(json, "state", state_names[thread->state]);
    if (has_frames(thread)) {
        bp_stacks_add_frames(stacks, thread, json);
    }
    bp_model_add_known_uint(json, "stopped_us",
                            thread->state == BP_STACK_STOPPED && !stacks->is_of_crash,
                            (thread->stopped_ns + 999) / 1000);
    bp_model_add_known_text(json, "reason", thread->reason);
    bp_stacks_add_python(stacks, thread, json);
    bp_json_object_end(json);
}

static void add_modules(bp_json *json, const bp_stacks *stacks) {
    bp_json_array_begin(json, "modules");
    for (size_t i = 0; i < stacks->module_count; i++) {
        const bp_stack_module *module = &stacks->modules[i];
        bp_json_object_begin(json, NULL);
        bp_json_add_text(json, "path", module->path);
        bp_model_add_hex(json, "address", module->start);
        bp_model_add_known_text(json, "build_id", module->build_id);
        bp_model_add_known_text(json, "trouble", module->trouble);
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
}

bugpack_status bp_stacks_print_json(const bp_stacks *stacks, bp_buffer *out, bugpack_error *error) {
    bp_json json;
    const char *taken = stacks->is_of_all ? "all" : "blocked";
    if (stacks->is_of_crash) {
        taken = "crash";
    }
    bp_json_begin(&json, out);
    bp_json_add_int(&json, "schema", BP_SCHEMA_NUMBER);
    bp_json_add_uint(&json, "pid", stacks->pid);
    bp_json_add_text(&json, "taken", taken);
    bp_json_add_text(&json, "interpreter", stacks->language);
    bp_model_add_known_text(&json, "python_version", stacks->python_version);
    bp_model_add_known_text(&json, "python_reason", stacks->python_reason);
    bp_json_add_bool(&json, "demangled", !stacks->is_mangled);
    bp_json_add_uint(&json, "threads_passed_over", stacks->passed_over_count);
    bp_model_add_known_uint(&json, "vanished_threads", !stacks->is_of_crash,
                            stacks->vanished_count);
    bp_json_array_begin(&json, "threads");
    for (size_t i = 0; i < stacks->thread_count; i++) {
        add_thread(&json, stacks, &stacks->threads[i]);
    }
    bp_json_array_end(&json);
    add_modules(&json, stacks);
    return bp_json_finish(&json, error);
}

static void append_thread(bp_buffer *out, const bp_stacks *stacks, size_t number) {
    const bp_stack_thread *thread = &stacks->threads[number];
    (void)bp_buffer_printf(out, "\nThread %zu (LWP %" PRIu64 " \"", number + 1, thread->tid);
    bp_frame_append_plain(out, thread->name, sizeof thread->name);
    (void)bp_buffer_append_text(out, "\"):\n");
    for (size_t i = 0, line = 0; i < thread->frame_count; i++) {
        const bp_stack_frame *frame = &stacks->frames[thread->first_frame + i];
        for (size_t index = 0; index <= stacks->places[frame->place].inlined_count; index++) {
            const bp_frame_text text = bp_stacks_frame_text(stacks, frame, index);
            bp_frame_append_line(out, &text, line++);
        }
    }
    if (thread->reason[0] != '\0') {
        (void)bp_buffer_printf(
            out, "%s: %s\n", has_frames(thread) ? "Backtrace stopped" : state_names[thread->state],
            thread->reason);
    }
    (void)bp_buffer_append_text(out, thread->python_count > 0 ? "Python:\n" : "");
    for (size_t i = 0; i < thread->python_count; i++) {
        const bp_frame_text text = python_text(&stacks->python_frames[thread->first_python + i]);
        bp_frame_append_line(out, &text, i);
    }
    if (thread->python_reason != NULL) {
        (void)bp_buffer_printf(out, "Python stopped: %s\n", thread->python_reason);
    }
}

bugpack_status bp_stacks_print_text(const bp_stacks *stacks, bp_buffer *out, bugpack_error *error) {
    size_t count = bp_stacks_count(stacks, BP_STACK_STOPPED);
    const char *which = stacks->is_of_all ? "" : "blocked ";
    if (stacks->is_of_crash) {
        which = count == 0 ? "crashed and blocked " : "";
    }
    (void)bp_buffer_printf(out, "Process %" PRIu64 ": the stacks of its %sthreads. ", stacks->pid,
                           which);
    if (count == 0) {
        (void)bp_buffer_append_text(out, "No thread was stopped.\n");
    } else if (stacks->is_of_crash) {
        (void)bp_buffer_append_text(out, "They are those of its core.\n");
    } else {
        (void)bp_buffer_printf(out, "%zu %s stopped, for at most %" PRIu64 " us each.\n", count,
                               count == 1 ? "was" : "were", bp_stacks_longest_stop_us(stacks));
    }
    if (stacks->python_version[0] != '\0' && stacks->python_reason[0] == '\0') {
        (void)bp_buffer_printf(
            out, "The functions of Python %s follow the C functions of each thread.\n",
            stacks->python_version);
    } else if (stacks->language != NULL) {
        const char *reason = stacks->python_reason;
        (void)bp_buffer_printf(out,
                               "A %s interpreter is loaded. The frames are its C functions, "
                               "not %s's%s%s.\n",
                               stacks->language, stacks->language, reason[0] != '\0' ? ": " : "",
                               reason);
    }
    if (stacks->is_mangled) {
        (void)bp_buffer_append_text(out, "C++ names are as the files have them: there is no "
                                         "libstdc++ to demangle them.\n");
    }
    for (size_t i = 0; i < stacks->thread_count; i++) {
        append_thread(out, stacks, i);
    }
    if (stacks->passed_over_count > 0) {
        (void)bp_buffer_printf(out, "\n%zu more threads were passed over.\n",
                               stacks->passed_over_count);
    }
    if (stacks->vanished_count > 0) {
        (void)bp_buffer_printf(out, "\n%zu more threads had ended.\n", stacks->vanished_count);
    }
    return out->status == BUGPACK_OK ? BUGPACK_OK
                                     : bp_fail(error, out->status, "cannot print stacks: %s",
                                               bugpack_status_name(out->status));
}
