#include "report/trigger_list.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

bp_trigger_note *bp_trigger_note_new(size_t count) {
    bp_trigger_note *note = calloc(1, sizeof *note + count * sizeof note->rows[0]);
    if (note != NULL) {
        note->count = count;
    }
    return note;
}

bool bp_trigger_note_apply(const bp_trigger_note *note, size_t row, bp_trigger_entry *entry) {
    if (note == NULL) {
        return true;
    }
    if (row >= note->count || note->rows[row].count == 0) {
        return false;
    }
    entry->count = note->rows[row].count;
    entry->last_wall_ns = note->rows[row].last_wall_ns;
    if (entry->last_wall_ns < entry->first_wall_ns) { /* its clock has a coarser tick */
        entry->last_wall_ns = entry->first_wall_ns;
    }
    if (entry->written_count >= entry->count) {
        entry->written_count = entry->count;
        entry->reason = NULL;
    }
    return true;
}

void bp_trigger_list_add(bp_trigger_list *list, const bp_trigger_entry *entry) {
    char *key = entry->key == NULL ? NULL : strdup(entry->key);
    if ((entry->key != NULL && key == NULL) ||
        !bp_array_reserve(&list->entries, list->count, &list->capacity)) {
        free(key);
        list->is_failed = true;
        return;
    }
    list->entries[list->count] = *entry;
    list->entries[list->count].key = key;
    list->count++;
}

void bp_trigger_list_count_written(bp_trigger_list *list, bp_report_kind kind, const char *key) {
    for (size_t i = 0; i < list->count; i++) {
        bp_trigger_entry *entry = &list->entries[i];
        bool is_same_key =
            key == NULL ? entry->key == NULL : entry->key != NULL && strcmp(entry->key, key) == 0;
        if (entry->kind == kind && is_same_key && entry->written_count < entry->count) {
            entry->written_count++;
            entry->reason = entry->written_count == entry->count ? NULL : entry->reason;
            return;
        }
    }
}

void bp_trigger_list_release(bp_trigger_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        free((char *)(uintptr_t)list->entries[i].key);
    }
    free(list->entries);
    *list = (bp_trigger_list){.entries = NULL};
}
