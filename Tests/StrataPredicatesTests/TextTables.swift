extension TextTableTests {
    static let folded = #"""
        "" "" "" "" "" ""
        "a" "a" "a" "a" "a" "a"
        "A" "a" "A" "a" "A" "a"
        "b" "b" "b" "b" "b" "b"
        "ab" "ab" "ab" "ab" "ab" "ab"
        "aB" "ab" "aB" "ab" "aB" "ab"
        "AAB" "aab" "AAB" "aab" "AAB" "aab"
        "aab" "aab" "aab" "aab" "aab" "aab"
        "aaab" "aaab" "aaab" "aaab" "aaab" "aaab"
        "abab" "abab" "abab" "abab" "abab" "abab"
        "ababc" "ababc" "ababc" "ababc" "ababc" "ababc"
        "abcabd" "abcabd" "abcabd" "abcabd" "abcabd" "abcabd"
        "Abc abd" "abc abd" "Abc abd" "abc abd" "Abc abd" "abc abd"
        "a*b" "a*b" "a*b" "a*b" "a*b" "a*b"
        "a?b" "a?b" "a?b" "a?b" "a?b" "a?b"
        "a\\b" "a\\b" "a\\b" "a\\b" "a\\b" "a\\b"
        "%_" "%_" "%_" "%_" "%_" "%_"
        "é" "é" "e" "e" "é" "é"
        "é" "é" "e" "e" "é" "é"
        "Été" "été" "Ete" "ete" "Été" "été"
        "ete" "ete" "ete" "ete" "ete" "ete"
        "Straße" "strasse" "Straße" "strasse" "Straße" "strasse"
        "STRASSE" "strasse" "STRASSE" "strasse" "STRASSE" "strasse"
        "ı" "ı" "ı" "ı" "ı" "ı"
        "i" "i" "i" "i" "i" "i"
        "I" "i" "I" "i" "I" "i"
        "İ" "i̇" "I" "i" "İ" "i̇"
        "ΑΆα" "αάα" "ΑΑα" "ααα" "ΑΆα" "αάα"
        "が" "が" "が" "が" "が" "が"
        "か" "か" "か" "か" "か" "か"
        "日本語" "日本語" "日本語" "日本語" "日本語" "日本語"
        "👩‍👧" "👩‍👧" "👩‍👧" "👩‍👧" "👩‍👧" "👩‍👧"
        "👩" "👩" "👩" "👩" "👩" "👩"
        "abcdefgh" "abcdefgh" "abcdefgh" "abcdefgh" "abcdefgh" "abcdefgh"
        "abcdefgé" "abcdefgé" "abcdefge" "abcdefge" "abcdefgé" "abcdefgé"
        "abcdefghi" "abcdefghi" "abcdefghi" "abcdefghi" "abcdefghi" "abcdefghi"
        "ABCDEFGHIJ" "abcdefghij" "ABCDEFGHIJ" "abcdefghij" "ABCDEFGHIJ" "abcdefghij"
        "line\nbreak" "line\nbreak" "line\nbreak" "line\nbreak" "line\nbreak" "line\nbreak"
        """#

    static let matched = #"""
        0 : ""
        0 a: "a"
        0 a|ab: "a" "ab"
        0 .*: "" "a" "A" "b" "ab" "aB" "AAB" "aab" "aaab" "abab" "ababc" "abcabd" "Abc abd" "a*b" "a?b" "a\\b" "%_" "é" "é" "Été" "ete" "Straße" "STRASSE" "ı" "i" "I" "İ" "ΑΆα" "が" "か" "日本語" "👩‍👧" "👩" "abcdefgh" "abcdefgé" "abcdefghi" "ABCDEFGHIJ"
        0 [a-c]+: "a" "b" "ab" "aab" "aaab" "abab" "ababc"
        0 (?i)A+B: "ab" "aB" "AAB" "aab" "aaab"
        0 \w+ \w+: "Abc abd"
        0 é: "é"
        0 é: "é"
        0 S(tr)a(ß|ss)e: "Straße"
        0 a.b: "aab" "a*b" "a?b" "a\\b"
        0 ^ab$: "ab"
        0 ^a: "a"
        0 .: "a" "A" "b" "é" "ı" "i" "I" "İ" "が" "か" "👩"
        0 \d*: ""
        1 : ""
        1 a: "a" "A"
        1 a|ab: "a" "A" "ab" "aB"
        1 .*: "" "a" "A" "b" "ab" "aB" "AAB" "aab" "aaab" "abab" "ababc" "abcabd" "Abc abd" "a*b" "a?b" "a\\b" "%_" "é" "é" "Été" "ete" "Straße" "STRASSE" "ı" "i" "I" "İ" "ΑΆα" "が" "か" "日本語" "👩‍👧" "👩" "abcdefgh" "abcdefgé" "abcdefghi" "ABCDEFGHIJ"
        1 [a-c]+: "a" "A" "b" "ab" "aB" "AAB" "aab" "aaab" "abab" "ababc"
        1 (?i)A+B: "ab" "aB" "AAB" "aab" "aaab"
        1 \w+ \w+: "Abc abd"
        1 é: "é"
        1 é: "é"
        1 S(tr)a(ß|ss)e: "Straße" "STRASSE"
        1 a.b: "AAB" "aab" "a*b" "a?b" "a\\b"
        1 ^ab$: "ab" "aB"
        1 ^a: "a" "A"
        1 .: "a" "A" "b" "é" "ı" "i" "I" "İ" "が" "か" "👩"
        1 \d*: ""
        2 : ""
        2 a: "a"
        2 a|ab: "a" "ab"
        2 .*: "" "a" "A" "b" "ab" "aB" "AAB" "aab" "aaab" "abab" "ababc" "abcabd" "Abc abd" "a*b" "a?b" "a\\b" "%_" "é" "é" "Été" "ete" "Straße" "STRASSE" "ı" "i" "I" "İ" "ΑΆα" "が" "か" "日本語" "👩‍👧" "👩" "abcdefgh" "abcdefgé" "abcdefghi" "ABCDEFGHIJ"
        2 [a-c]+: "a" "b" "ab" "aab" "aaab" "abab" "ababc"
        2 (?i)A+B: "ab" "aB" "AAB" "aab" "aaab"
        2 \w+ \w+: "Abc abd"
        2 é: "é" "é"
        2 é: "é" "é"
        2 S(tr)a(ß|ss)e: "Straße"
        2 a.b: "aab" "a*b" "a?b" "a\\b"
        2 ^ab$: "ab"
        2 ^a: "a"
        2 .: "a" "A" "b" "é" "é" "ı" "i" "I" "İ" "が" "か" "👩"
        2 \d*: ""
        3 : ""
        3 a: "a" "A"
        3 a|ab: "a" "A" "ab" "aB"
        3 .*: "" "a" "A" "b" "ab" "aB" "AAB" "aab" "aaab" "abab" "ababc" "abcabd" "Abc abd" "a*b" "a?b" "a\\b" "%_" "é" "é" "Été" "ete" "Straße" "STRASSE" "ı" "i" "I" "İ" "ΑΆα" "が" "か" "日本語" "👩‍👧" "👩" "abcdefgh" "abcdefgé" "abcdefghi" "ABCDEFGHIJ"
        3 [a-c]+: "a" "A" "b" "ab" "aB" "AAB" "aab" "aaab" "abab" "ababc"
        3 (?i)A+B: "ab" "aB" "AAB" "aab" "aaab"
        3 \w+ \w+: "Abc abd"
        3 é: "é" "é"
        3 é: "é" "é"
        3 S(tr)a(ß|ss)e: "Straße" "STRASSE"
        3 a.b: "AAB" "aab" "a*b" "a?b" "a\\b"
        3 ^ab$: "ab" "aB"
        3 ^a: "a" "A"
        3 .: "a" "A" "b" "é" "é" "ı" "i" "I" "İ" "が" "か" "👩"
        3 \d*: ""
        """#

    static let fixed = #"""
        : '' ''
        abc: 'abc' 'abc'
        abc*: 'abc' 'abc'
        *abc: '' 'abc'
        ab*cdef*g: 'ab' 'cdef'
        a?cde: 'a' 'cde'
        ?: '' ''
        *: '' ''
        a\*b*: 'a*b' 'a*b'
        *a?cdefghi*: '' 'cdefghi' costly
        *a?cdefgh*: '' 'cdefgh'
        a?bcdefghijk*: 'a' 'bcdefghijk'
        *é?*ü: '' 'é'
        """#

    static let sorts = #"""
        compare:  a B 1  a A 1  é f 1  e é -1  a10 a9 -1  ß ss 1   a -1  a a 0
        caseInsensitiveCompare:  a B -1  a A 0  é f 1  e é -1  a10 a9 -1  ß ss 0   a -1  a a 0
        localizedCompare:  a B -1  a A -1  é f -1  e é -1  a10 a9 -1  ß ss 1   a -1  a a 0
        localizedCaseInsensitiveCompare:  a B -1  a A 0  é f -1  e é -1  a10 a9 -1  ß ss 0   a -1  a a 0
        localizedStandardCompare:  a B -1  a A -1  é f -1  e é -1  a10 a9 1  ß ss 1   a -1  a a 0
        """#
}
