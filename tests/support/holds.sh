# What is true of a JSON text. Sourced.
# shellcheck shell=sh

# holds FILTER [FILE...]: jq has an answer, and each is true. Not `jq -e`: in version 1.6 it takes empty
# input for success, and looks at the last answer only.
holds() {
    answers=$(jq -c "$@") && [ -n "$answers" ] && ! printf '%s\n' "$answers" | grep -qxE 'null|false'
}
