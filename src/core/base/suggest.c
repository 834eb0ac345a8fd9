#include "base/suggest.h"

#include <string.h>

enum { word_max = 63, distance_max = 3 };

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Optimal string alignment: Levenshtein's distance, where two swapped neighbours count once. */
static size_t measure(const char *a, size_t a_length, const char *b, size_t b_length) {
    size_t rows[3][word_max + 1];
    for (size_t i = 0; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        for (size_t j = 0; j <= b_length; j++) {
            if (i == 0 || j == 0) {
                row[j] = i + j;
                continue;
            }
            row[j] = smaller(smaller(above[j], row[j - 1]) + 1,
                             above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = smaller(row[j], two_above[j - 2] + 1);
            }
        }
    }
    return rows[a_length % 3][b_length];
}

void bp_suggest(bp_suggestion *suggestion, const char *name) {
    size_t length = strlen(suggestion->word), name_length = strlen(name);
    size_t most = smaller(length / 3 > 0 ? length / 3 : 1, distance_max);
    size_t limit = suggestion->name != NULL ? suggestion->distance : most + 1;
    size_t distance = length <= word_max && name_length <= word_max
                          ? measure(suggestion->word, length, name, name_length)
                          : limit;
    if (distance < limit) {
        suggestion->name = name;
        suggestion->distance = distance;
    }
}
