#!/usr/bin/env bash
# The catalogue that DocC makes the site of: the landing page, and each page of Docs/ once, with links that lead to the site's pages.
#
#   Docs/site.sh FOLDER.docc
#
# Fails if a page links to a page that is not there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
catalogue=$1
mkdir -p "$catalogue"
cp Site/CoreData.md "$catalogue/"
faults=0
for page in *.md; do
    while read -r link; do
        [ -e "$link" ] || { echo "Docs/$page links to $link, which is not there." >&2; faults=1; }
    done < <(grep -oE '\]\([^)#:]+' "$page" | sed 's/^](//')
    # [Text](Page.md) and [Text](Page.md#part) become links of DocC; what lies beside Docs/ becomes plain text, and so do parts of
    # the page itself. The marks of generated parts are for scripts only.
    sed -E -e 's/\[[^]]*\]\(([A-Z][A-Za-z0-9]*)\.md(#[^)]*)?\)/<doc:\/CoreData\/\1>/g' \
        -e 's/\[([^]]*)\]\((\.\.\/|#)[^)]*\)/\1/g' -e '/^<!--.*-->$/d' "$page" > "$catalogue/$page"
done
exit $faults
