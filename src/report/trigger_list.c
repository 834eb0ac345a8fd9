#include "report/trigger_list.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(bp_trigger_list *list) {
    if (list->count < list->capacity) {
        return true;
    }
    size_t capacity = list->capacity == 0 ? 16 : list->capacity * 2;
    bp_trigger_entry *entries = realloc(list->entries, capacity * sizeof *entries);
    if (entries != NULL) {
        list->entries = entries;
        list->capacity = capacity;
    }
    return entries != NULL;
}

void bp_trigger_list_add(bp_trigger_list *list, const bp_trigger_entry *entry) {
    char *key = entry->key == NULL ? NULL : strdup(entry->key);
    if ((entry->key != NULL && key == NULL) || !reserve(list)) {
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
