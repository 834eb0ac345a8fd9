#include "support/report_reader.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

static char *read_entry(zip_t *zip, const char *entry, size_t *ret_bytes) {
    zip_stat_t info;
    if (zip_stat(zip, entry, 0, &info) != 0) {
        return NULL;
    }
    char *text = malloc((size_t)info.size + 1);
    zip_file_t *file = zip_fopen(zip, entry, 0);
    bool is_read =
        text != NULL && file != NULL && zip_fread(file, text, info.size) == (zip_int64_t)info.size;
    if (file != NULL && zip_fclose(file) != 0) {
        is_read = false;
    }
    if (!is_read) {
        free(text);
        return NULL;
    }
    text[info.size] = '\0';
    if (ret_bytes != NULL) {
        *ret_bytes = (size_t)info.size;
    }
    return text;
}

char *report_read(const char *zip_path, const char *entry, size_t *ret_bytes) {
    zip_t *zip = zip_open(zip_path, ZIP_RDONLY | ZIP_CHECKCONS, NULL);
    char *text = zip == NULL ? NULL : read_entry(zip, entry, ret_bytes);
    if (zip != NULL) {
        zip_discard(zip);
    }
    return text;
}

bool report_entry_contains(const char *zip_path, const char *entry, const char *needle) {
    char *text = report_read(zip_path, entry, NULL);
    bool is_there = text != NULL && strstr(text, needle) != NULL;
    free(text);
    return is_there;
}

char *report_list(const char *zip_path) {
    zip_t *zip = zip_open(zip_path, ZIP_RDONLY | ZIP_CHECKCONS, NULL);
    char *list = NULL;
    size_t list_bytes = 0;
    FILE *out = zip == NULL ? NULL : open_memstream(&list, &list_bytes);
    if (out != NULL) {
        for (zip_int64_t i = 0; i < zip_get_num_entries(zip, 0); i++) {
            (void)fprintf(out, "%s\n", zip_get_name(zip, (zip_uint64_t)i, 0));
        }
        (void)fclose(out);
    }
    if (zip != NULL) {
        zip_discard(zip);
    }
    return list;
}

bool report_find_only(const temp_dir *dir, char *path, size_t path_bytes) {
    size_t found_count = 0;
    DIR *listing = opendir(dir->path);
    struct dirent *entry;
    while (listing != NULL && (entry = readdir(listing)) != NULL) {
        size_t length = strlen(entry->d_name);
        if (length > 4 && strcmp(entry->d_name + length - 4, ".zip") == 0) {
            (void)snprintf(path, path_bytes, "%s/%s", dir->path, entry->d_name);
            found_count++;
        }
    }
    if (listing != NULL) {
        (void)closedir(listing);
    }
    return found_count == 1;
}
