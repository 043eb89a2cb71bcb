#!/usr/bin/env bash
# What DocC makes the site of, and what it leaves out.
#
#   Docs/site.sh FOLDER.docc BASE MODULE...   the catalogue: the landing pages of the modules, each page of Docs/ once, with links that lead
#                                             to the site's pages, and the line of links above every page. BASE is the path at which a web
#                                             server has the site, or empty.
#   Docs/site.sh start ARCHIVE                lets the addresses above the landing page lead to it
#
# Fails if a page links to a page that is not there.
set -euo pipefail
if [ "$1" = start ]; then
    for place in .:documentation/coredata/ documentation:coredata/; do
        printf '<!doctype html><meta charset="utf-8"><title>Strata</title><meta http-equiv="refresh" content="0; url=%s"><a href="%s">Strata</a>\n' \
            "${place#*:}" "${place#*:}" > "$2/${place%:*}/index.html"
    done
    exit
fi
cd "$(dirname "${BASH_SOURCE[0]}")"
catalogue=$1 base=$2
shift 2
mkdir -p "$catalogue"
reference=
for module in "$@"; do
    # The page of CoreData begins with the manual.
    part=$([ "$module" != CoreData ] || echo '#Classes')
    reference+="<a href=\"$base/documentation/${module,,}$part\">$module</a> "
    # A page of Docs/ may have the name of a module.
    cp "Site/$module.md" "$catalogue/module-$module.md"
done
sed -e "s|BASE|$base|" -e "s|^REFERENCE|$reference|" Site/header.html > "$catalogue/header.html"
faults=0
for page in *.md; do
    while read -r link; do
        [ -e "$link" ] || { echo "Docs/$page links to $link, which is not there." >&2; faults=1; }
    # A link with a scheme leads out of the repository.
    done < <(grep -oE '\]\([^)#:]+[)#]' "$page" | sed -e 's/^](//' -e 's/.$//')
    # [Text](Page.md) and [Text](Page.md#part) become links of DocC; what lies beside Docs/ becomes plain text, and so do parts of
    # the page itself. The marks of generated parts are for scripts only.
    sed -E -e 's/\[[^]]*\]\(([A-Z][A-Za-z0-9]*)\.md(#[^)]*)?\)/<doc:\/CoreData\/\1>/g' \
        -e 's/\[([^]]*)\]\((\.\.\/|#)[^)]*\)/\1/g' -e '/^<!--.*-->$/d' "$page" > "$catalogue/$page"
done
exit $faults
