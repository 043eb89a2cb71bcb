extension ValueTableTests {
    static let orders = #"""
        nil      eee......................................... ===<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<
        NaN      eee......................................... ===<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<
        @NaN     eee......................................... ===<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<
        -inf     ...=<<<<<<<<<<<<<<<......................... >>>=<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<
        min      ...>==<<<<<<<<<<<<<......................... >>>>==<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<
        -2^63    ...>==<<<<<<<<<<<<<......................... >>>>==<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<
        -1       ...>>>=<<<<<<<<<<<<......................... >>>>>>=<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<
        -0.5     ...>>>>=<<<<<<<<<<<......................... >>>>>>>=<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<
        -0.0     ...>>>>>==<<<<<<<<<......................... >>>>>>>>==<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<
        0        ...>>>>>==<<<<<<<<<......................... >>>>>>>>==<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<
        0.5      ...>>>>>>>=<<<<<<<<......................... >>>>>>>>>>=<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<
        1        ...>>>>>>>>==<<<<<<......................... >>>>>>>>>>>==<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<
        1.0      ...>>>>>>>>==<<<<<<......................... >>>>>>>>>>>==<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<
        2^53     ...>>>>>>>>>>==<<<<......................... >>>>>>>>>>>>>==<<<<<<<<<<<<<<<<<<<<<<<<<<<<<
        2^53.0   ...>>>>>>>>>>==<<<<......................... >>>>>>>>>>>>>==<<<<<<<<<<<<<<<<<<<<<<<<<<<<<
        2^53+1   ...>>>>>>>>>>>>=<<<......................... >>>>>>>>>>>>>>>=<<<<<<<<<<<<<<<<<<<<<<<<<<<<
        max      ...>>>>>>>>>>>>>=<<......................... >>>>>>>>>>>>>>>>=<<<<<<<<<<<<<<<<<<<<<<<<<<<
        2^63     ...>>>>>>>>>>>>>>=<......................... >>>>>>>>>>>>>>>>>=<<<<<<<<<<<<<<<<<<<<<<<<<<
        inf      ...>>>>>>>>>>>>>>>=......................... >>>>>>>>>>>>>>>>>>=<<<<<<<<<<<<<<<<<<<<<<<<<
        ''       ...................=<<<<<<.................. >>>>>>>>>>>>>>>>>>>=<<<<<<>><<<<<<<<<<<<<<<<
        'A'      ...................>=<<<<>.................. >>>>>>>>>>>>>>>>>>>>=<<<<>>><<<<<<<<<<<<<<<<
        'a'      ...................>>=<<<>.................. >>>>>>>>>>>>>>>>>>>>>=<<<>>><<<<<<<<<<<<<<<<
        'ab'     ...................>>>=<<>.................. >>>>>>>>>>>>>>>>>>>>>>=<<>>><<<<<<<<<<<<<<<<
        'é'      ...................>>>>=>>.................. >>>>>>>>>>>>>>>>>>>>>>>=>>>><<<<<<<<<<<<<<<<
        'é'     ...................>>>><=>.................. >>>>>>>>>>>>>>>>>>>>>>><=>>><<<<<<<<<<<<<<<<
        '1'      ...................><<<<<=.................. >>>>>>>>>>>>>>>>>>>><<<<<=>><<<<<<<<<<<<<<<<
        @0       ..........................=<................ >>>>>>>>>>>>>>>>>>><<<<<<<=<<<<<<<<<<<<<<<<<
        @1       ..........................>=................ >>>>>>>>>>>>>>>>>>><<<<<<<>=<<<<<<<<<<<<<<<<
        uuid 1   ............................=<.............. >>>>>>>>>>>>>>>>>>>>>>>>>>>>=<<<<<<<<<<<<<<<
        uuid 2   ............................>=.............. >>>>>>>>>>>>>>>>>>>>>>>>>>>>>=<<<<<<<<<<<<<<
        <>       ..............................=<<<.......... >>>>>>>>>>>>>>>>>>>>>>>>>>>>>>=<<<<<<<<<<<<<
        <00>     ..............................>=<<.......... >>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>=<<<<<<<<<<<<
        <0001>   ..............................>>=<.......... >>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>=<<<<<<<<<<<
        <01>     ..............................>>>=.......... >>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>=<<<<<<<<<<
        1.1.1    ..................................=<<<...... >>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>=<<<<<<<<<
        1.1.2    ..................................>=<<...... >>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>=<<<<<<<<
        1.2.1    ..................................>>=<...... >>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>=<<<<<<<
        2.1.1    ..................................>>>=...... >>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>=<<<<<<
        entity 1 ......................................e..... >>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>==<<<<
        entity 2 .......................................e.... >>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>==<<<<
        {}       ........................................e... >>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>====
        {1}      .........................................ee. >>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>====
        {1.0}    .........................................ee. >>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>====
        {nil}    ...........................................e >>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>====
        """#

    static let comparisons = #"""
        nil nil ----+-------!!
        nil NaN ----+-------!!
        nil 1 -----+------!!
          between is no comparison of two single values
          customSelector is no comparison of two single values
        nil 0.5 -----+------!!
        nil 'a' -----+------!!
        nil @0 -----+------!!
        nil uuid 1 -----+------!!
        nil <> -----+------!!
        nil 1.1.1 -----+------!!
        nil entity 1 -----+------!!
        nil {} -----+------!!
        NaN nil ----+-------!!
        NaN NaN ----+-------!!
        NaN 1 -----+------!!
          between is no comparison of two single values
          customSelector is no comparison of two single values
        NaN 0.5 -----+------!!
        NaN 'a' -----+------!!
        NaN @0 -----+------!!
        NaN uuid 1 -----+------!!
        NaN <> -----+------!!
        NaN 1.1.1 -----+------!!
        NaN entity 1 -----+------!!
        NaN {} -----+------!!
        1 nil -----+------!!
          between is no comparison of two single values
          customSelector is no comparison of two single values
        1 NaN -----+------!!
          between is no comparison of two single values
          customSelector is no comparison of two single values
        1 1 -+-++-!!!!!!!!
          beginsWith needs a string on both sides, not a number and a number
          endsWith needs a string on both sides, not a number and a number
          contains needs a string on both sides, not a number and a number
          like needs a string on both sides, not a number and a number
          matches needs a string on both sides, not a number and a number
          between is no comparison of two single values
          customSelector is no comparison of two single values
        1 0.5 --++-+!!!!!!!!
          beginsWith needs a string on both sides, not a number and a number
          endsWith needs a string on both sides, not a number and a number
          contains needs a string on both sides, not a number and a number
          like needs a string on both sides, not a number and a number
          matches needs a string on both sides, not a number and a number
          between is no comparison of two single values
          customSelector is no comparison of two single values
        1 'a' !!!!-+!!!!!!!!
          there is no order between a number and a string
          beginsWith needs a string on both sides, not a number and a string
          endsWith needs a string on both sides, not a number and a string
          contains needs a string on both sides, not a number and a string
          contains needs a string on both sides, not a string and a number
          like needs a string on both sides, not a number and a string
          matches needs a string on both sides, not a number and a string
          between is no comparison of two single values
          customSelector is no comparison of two single values
        1 @0 !!!!-+!!!!!!!!
          there is no order between a number and a date
          beginsWith needs a string on both sides, not a number and a date
          endsWith needs a string on both sides, not a number and a date
          contains needs a string on both sides, not a number and a date
          contains needs a string on both sides, not a date and a number
          like needs a string on both sides, not a number and a date
          matches needs a string on both sides, not a number and a date
          between is no comparison of two single values
          customSelector is no comparison of two single values
        1 uuid 1 !!!!-+!!!!!!!!
          there is no order between a number and a UUID
          beginsWith needs a string on both sides, not a number and a UUID
          endsWith needs a string on both sides, not a number and a UUID
          contains needs a string on both sides, not a number and a UUID
          contains needs a string on both sides, not a UUID and a number
          like needs a string on both sides, not a number and a UUID
          matches needs a string on both sides, not a number and a UUID
          between is no comparison of two single values
          customSelector is no comparison of two single values
        1 <> !!!!-+!!!!!!!!
          there is no order between a number and data
          beginsWith needs a string on both sides, not a number and data
          endsWith needs a string on both sides, not a number and data
          contains needs a string on both sides, not a number and data
          contains needs a string on both sides, not data and a number
          like needs a string on both sides, not a number and data
          matches needs a string on both sides, not a number and data
          between is no comparison of two single values
          customSelector is no comparison of two single values
        1 1.1.1 !!!!-+!!!!!!!!
          there is no order between a number and an object
          beginsWith needs a string on both sides, not a number and an object
          endsWith needs a string on both sides, not a number and an object
          contains needs a string on both sides, not a number and an object
          contains needs a string on both sides, not an object and a number
          like needs a string on both sides, not a number and an object
          matches needs a string on both sides, not a number and an object
          between is no comparison of two single values
          customSelector is no comparison of two single values
        1 entity 1 !!!!-+!!!!!!!!
          there is no order between a number and an entity
          beginsWith needs a string on both sides, not a number and an entity
          endsWith needs a string on both sides, not a number and an entity
          contains needs a string on both sides, not a number and an entity
          contains needs a string on both sides, not an entity and a number
          like needs a string on both sides, not a number and an entity
          matches needs a string on both sides, not a number and an entity
          between is no comparison of two single values
          customSelector is no comparison of two single values
        1 {} !!!!-+!!!!!!!!
          there is no order between a number and a collection
          beginsWith needs a string on both sides, not a number and a collection
          endsWith needs a string on both sides, not a number and a collection
          contains needs a string on both sides, not a number and a collection
          contains needs a string on both sides, not a collection and a number
          like needs a string on both sides, not a number and a collection
          matches needs a string on both sides, not a number and a collection
          between is no comparison of two single values
          customSelector is no comparison of two single values
        0.5 nil -----+------!!
        0.5 NaN -----+------!!
        0.5 1 ++---+!!!!!!!!
          beginsWith needs a string on both sides, not a number and a number
          endsWith needs a string on both sides, not a number and a number
          contains needs a string on both sides, not a number and a number
          like needs a string on both sides, not a number and a number
          matches needs a string on both sides, not a number and a number
          between is no comparison of two single values
          customSelector is no comparison of two single values
        0.5 0.5 -+-++-!!!!!!!!
        0.5 'a' !!!!-+!!!!!!!!
        0.5 @0 !!!!-+!!!!!!!!
        0.5 uuid 1 !!!!-+!!!!!!!!
        0.5 <> !!!!-+!!!!!!!!
        0.5 1.1.1 !!!!-+!!!!!!!!
        0.5 entity 1 !!!!-+!!!!!!!!
        0.5 {} !!!!-+!!!!!!!!
        'a' nil -----+------!!
        'a' NaN -----+------!!
        'a' 1 !!!!-+!!!!!!!!
          there is no order between a string and a number
          beginsWith needs a string on both sides, not a string and a number
          endsWith needs a string on both sides, not a string and a number
          contains needs a string on both sides, not a string and a number
          contains needs a string on both sides, not a number and a string
          like needs a string on both sides, not a string and a number
          matches needs a string on both sides, not a string and a number
          between is no comparison of two single values
          customSelector is no comparison of two single values
        'a' 0.5 !!!!-+!!!!!!!!
        'a' 'a' -+-++-++++++!!
        'a' @0 !!!!-+!!!!!!!!
        'a' uuid 1 !!!!-+!!!!!!!!
        'a' <> !!!!-+!!!!!!!!
        'a' 1.1.1 !!!!-+!!!!!!!!
        'a' entity 1 !!!!-+!!!!!!!!
        'a' {} !!!!-+!!!!!!!!
        @0 nil -----+------!!
        @0 NaN -----+------!!
        @0 1 !!!!-+!!!!!!!!
          there is no order between a date and a number
          beginsWith needs a string on both sides, not a date and a number
          endsWith needs a string on both sides, not a date and a number
          contains needs a string on both sides, not a date and a number
          contains needs a string on both sides, not a number and a date
          like needs a string on both sides, not a date and a number
          matches needs a string on both sides, not a date and a number
          between is no comparison of two single values
          customSelector is no comparison of two single values
        @0 0.5 !!!!-+!!!!!!!!
        @0 'a' !!!!-+!!!!!!!!
        @0 @0 -+-++-!!!!!!!!
        @0 uuid 1 !!!!-+!!!!!!!!
        @0 <> !!!!-+!!!!!!!!
        @0 1.1.1 !!!!-+!!!!!!!!
        @0 entity 1 !!!!-+!!!!!!!!
        @0 {} !!!!-+!!!!!!!!
        uuid 1 nil -----+------!!
        uuid 1 NaN -----+------!!
        uuid 1 1 !!!!-+!!!!!!!!
          there is no order between a UUID and a number
          beginsWith needs a string on both sides, not a UUID and a number
          endsWith needs a string on both sides, not a UUID and a number
          contains needs a string on both sides, not a UUID and a number
          contains needs a string on both sides, not a number and a UUID
          like needs a string on both sides, not a UUID and a number
          matches needs a string on both sides, not a UUID and a number
          between is no comparison of two single values
          customSelector is no comparison of two single values
        uuid 1 0.5 !!!!-+!!!!!!!!
        uuid 1 'a' !!!!-+!!!!!!!!
        uuid 1 @0 !!!!-+!!!!!!!!
        uuid 1 uuid 1 -+-++-!!!!!!!!
        uuid 1 <> !!!!-+!!!!!!!!
        uuid 1 1.1.1 !!!!-+!!!!!!!!
        uuid 1 entity 1 !!!!-+!!!!!!!!
        uuid 1 {} !!!!-+!!!!!!!!
        <> nil -----+------!!
        <> NaN -----+------!!
        <> 1 !!!!-+!!!!!!!!
          there is no order between data and a number
          beginsWith needs a string on both sides, not data and a number
          endsWith needs a string on both sides, not data and a number
          contains needs a string on both sides, not data and a number
          contains needs a string on both sides, not a number and data
          like needs a string on both sides, not data and a number
          matches needs a string on both sides, not data and a number
          between is no comparison of two single values
          customSelector is no comparison of two single values
        <> 0.5 !!!!-+!!!!!!!!
        <> 'a' !!!!-+!!!!!!!!
        <> @0 !!!!-+!!!!!!!!
        <> uuid 1 !!!!-+!!!!!!!!
        <> <> -+-++-!!!!!!!!
        <> 1.1.1 !!!!-+!!!!!!!!
        <> entity 1 !!!!-+!!!!!!!!
        <> {} !!!!-+!!!!!!!!
        1.1.1 nil -----+------!!
        1.1.1 NaN -----+------!!
        1.1.1 1 !!!!-+!!!!!!!!
          there is no order between an object and a number
          beginsWith needs a string on both sides, not an object and a number
          endsWith needs a string on both sides, not an object and a number
          contains needs a string on both sides, not an object and a number
          contains needs a string on both sides, not a number and an object
          like needs a string on both sides, not an object and a number
          matches needs a string on both sides, not an object and a number
          between is no comparison of two single values
          customSelector is no comparison of two single values
        1.1.1 0.5 !!!!-+!!!!!!!!
        1.1.1 'a' !!!!-+!!!!!!!!
        1.1.1 @0 !!!!-+!!!!!!!!
        1.1.1 uuid 1 !!!!-+!!!!!!!!
        1.1.1 <> !!!!-+!!!!!!!!
        1.1.1 1.1.1 -+-++-!!!!!!!!
        1.1.1 entity 1 !!!!-+!!!!!!!!
        1.1.1 {} !!!!-+!!!!!!!!
        entity 1 nil -----+------!!
        entity 1 NaN -----+------!!
        entity 1 1 !!!!-+!!!!!!!!
          there is no order between an entity and a number
          beginsWith needs a string on both sides, not an entity and a number
          endsWith needs a string on both sides, not an entity and a number
          contains needs a string on both sides, not an entity and a number
          contains needs a string on both sides, not a number and an entity
          like needs a string on both sides, not an entity and a number
          matches needs a string on both sides, not an entity and a number
          between is no comparison of two single values
          customSelector is no comparison of two single values
        entity 1 0.5 !!!!-+!!!!!!!!
        entity 1 'a' !!!!-+!!!!!!!!
        entity 1 @0 !!!!-+!!!!!!!!
        entity 1 uuid 1 !!!!-+!!!!!!!!
        entity 1 <> !!!!-+!!!!!!!!
        entity 1 1.1.1 !!!!-+!!!!!!!!
        entity 1 entity 1 !!!!+-!!!!!!!!
        entity 1 {} !!!!-+!!!!!!!!
        {} nil -----+------!!
        {} NaN -----+------!!
        {} 1 !!!!-+!!!!!!!!
          there is no order between a collection and a number
          beginsWith needs a string on both sides, not a collection and a number
          endsWith needs a string on both sides, not a collection and a number
          contains needs a string on both sides, not a collection and a number
          contains needs a string on both sides, not a number and a collection
          like needs a string on both sides, not a collection and a number
          matches needs a string on both sides, not a collection and a number
          between is no comparison of two single values
          customSelector is no comparison of two single values
        {} 0.5 !!!!-+!!!!!!!!
        {} 'a' !!!!-+!!!!!!!!
        {} @0 !!!!-+!!!!!!!!
        {} uuid 1 !!!!-+!!!!!!!!
        {} <> !!!!-+!!!!!!!!
        {} 1.1.1 !!!!-+!!!!!!!!
        {} entity 1 !!!!-+!!!!!!!!
        {} {} !!!!+-!!!!!!!!
        """#

    static let unaryResults = #"""
        sqrt:  -0.0 → -0.0  0 → 0.0  0.5 → 0.7071067811865476  1 → 1.0  1.0 → 1.0  2^53 → 94906265.62425156
        sqrt:  2^53.0 → 94906265.62425156  2^53+1 → 94906265.62425156  max → 3037000499.97605  2^63 → 3037000499.97605
        sqrt:  inf → inf  2.5 → 1.5811388300841898  1e+300 → 1e+150  100.0 → 10.0
        log:  -0.0 → -inf  0 → -inf  0.5 → -0.3010299956639812  1 → 0.0  1.0 → 0.0  2^53 → 15.954589770191003
        log:  2^53.0 → 15.954589770191003  2^53+1 → 15.954589770191003  max → 18.964889726830815
        log:  2^63 → 18.964889726830815  inf → inf  2.5 → 0.3979400086720376  1e+300 → 300.0  100.0 → 2.0
        ln:  -0.0 → -inf  0 → -inf  0.5 → -0.6931471805599453  1 → 0.0  1.0 → 0.0  2^53 → 36.7368005696771
        ln:  2^53.0 → 36.7368005696771  2^53+1 → 36.7368005696771  max → 43.66827237527655  2^63 → 43.66827237527655
        ln:  inf → inf  2.5 → 0.9162907318741551  1e+300 → 690.7755278982137  100.0 → 4.605170185988092
        exp:  -inf → 0.0  min → 0.0  -2^63 → 0.0  -1 → 0.36787944117144233  -0.5 → 0.6065306597126334  -0.0 → 1.0
        exp:  0 → 1.0  0.5 → 1.6487212707001282  1 → 2.718281828459045  1.0 → 2.718281828459045  2^53 → inf
        exp:  2^53.0 → inf  2^53+1 → inf  max → inf  2^63 → inf  inf → inf  -2.5 → 0.0820849986238988
        exp:  2.5 → 12.182493960703473  1e+300 → inf  100.0 → 2.6881171418161356e+43
        floor:  -inf → -inf  min → -9223372036854775808  -2^63 → -9.223372036854776e+18  -1 → -1  -0.5 → -1.0
        floor:  -0.0 → -0.0  0 → 0  0.5 → 0.0  1 → 1  1.0 → 1.0  2^53 → 9007199254740992  2^53.0 → 9007199254740992.0
        floor:  2^53+1 → 9007199254740993  max → 9223372036854775807  2^63 → 9.223372036854776e+18  inf → inf
        floor:  -2.5 → -3.0  2.5 → 2.0  1e+300 → 1e+300  100.0 → 100.0
        ceiling:  -inf → -inf  min → -9223372036854775808  -2^63 → -9.223372036854776e+18  -1 → -1  -0.5 → -0.0
        ceiling:  -0.0 → -0.0  0 → 0  0.5 → 1.0  1 → 1  1.0 → 1.0  2^53 → 9007199254740992
        ceiling:  2^53.0 → 9007199254740992.0  2^53+1 → 9007199254740993  max → 9223372036854775807
        ceiling:  2^63 → 9.223372036854776e+18  inf → inf  -2.5 → -2.0  2.5 → 3.0  1e+300 → 1e+300  100.0 → 100.0
        trunc:  -inf → -inf  min → -9223372036854775808  -2^63 → -9.223372036854776e+18  -1 → -1  -0.5 → -0.0
        trunc:  -0.0 → -0.0  0 → 0  0.5 → 0.0  1 → 1  1.0 → 1.0  2^53 → 9007199254740992  2^53.0 → 9007199254740992.0
        trunc:  2^53+1 → 9007199254740993  max → 9223372036854775807  2^63 → 9.223372036854776e+18  inf → inf
        trunc:  -2.5 → -2.0  2.5 → 2.0  1e+300 → 1e+300  100.0 → 100.0
        abs:  -inf → inf  min → 9.223372036854776e+18  -2^63 → 9.223372036854776e+18  -1 → 1  -0.5 → 0.5  -0.0 → 0.0
        abs:  0 → 0  0.5 → 0.5  1 → 1  1.0 → 1.0  2^53 → 9007199254740992  2^53.0 → 9007199254740992.0
        abs:  2^53+1 → 9007199254740993  max → 9223372036854775807  2^63 → 9.223372036854776e+18  inf → inf
        abs:  -2.5 → 2.5  2.5 → 2.5  1e+300 → 1e+300  100.0 → 100.0
        uppercase:  '' → ''  'A' → 'A'  'a' → 'A'  'ab' → 'AB'  'é' → 'É'  'é' → 'É'  '1' → '1'  'Straße' → 'STRASSE'
        uppercase:  'ÀÉ' → 'ÀÉ'  'İ' → 'İ'  '👩‍👧' → '👩‍👧'
        lowercase:  '' → ''  'A' → 'a'  'a' → 'a'  'ab' → 'ab'  'é' → 'é'  'é' → 'é'  '1' → '1'  'Straße' → 'straße'
        lowercase:  'ÀÉ' → 'àé'  'İ' → 'i̇'  '👩‍👧' → '👩‍👧'
        canonical:  '' → ''  'A' → 'a'  'a' → 'a'  'ab' → 'ab'  'é' → 'e'  'é' → 'e'  '1' → '1'  'Straße' → 'strasse'
        canonical:  'ÀÉ' → 'ae'  'İ' → 'i'  '👩‍👧' → '👩‍👧'
        length:  '' → 0  'A' → 1  'a' → 1  'ab' → 2  'é' → 1  'é' → 2  '1' → 1  <> → 0  <00> → 1  <0001> → 2  <01> → 1
        length:  'Straße' → 6  'ÀÉ' → 2  'İ' → 1  '👩‍👧' → 5
        onesComplement:  min → 9223372036854775807  -2^63 → 9223372036854775807  -1 → 0  -0.5 → -1  -0.0 → -1  0 → -1
        onesComplement:  0.5 → -1  1 → -2  1.0 → -2  2^53 → -9007199254740993  2^53.0 → -9007199254740993
        onesComplement:  2^53+1 → -9007199254740994  max → -9223372036854775808  -2.5 → 1  2.5 → -3  100.0 → -101
        noindex:  -inf → -inf  min → -9223372036854775808  -2^63 → -9.223372036854776e+18  -1 → -1  -0.5 → -0.5
        noindex:  -0.0 → -0.0  0 → 0  0.5 → 0.5  1 → 1  1.0 → 1.0  2^53 → 9007199254740992
        noindex:  2^53.0 → 9007199254740992.0  2^53+1 → 9007199254740993  max → 9223372036854775807
        noindex:  2^63 → 9.223372036854776e+18  inf → inf  '' → ''  'A' → 'A'  'a' → 'a'  'ab' → 'ab'  'é' → 'é'
        noindex:  'é' → 'é'  '1' → '1'  @0 → @0.0  @1 → @1.0  uuid 1 → uuid 1  uuid 2 → uuid 2  <> → <>  <00> → <0>
        noindex:  <0001> → <0 1>  <01> → <1>  1.1.1 → 1.1.1  1.1.2 → 1.1.2  1.2.1 → 1.2.1  2.1.1 → 2.1.1
        noindex:  entity 1 → entity 1  entity 2 → entity 2  {} → {}  {1} → {1}  {1.0} → {1.0}  {nil} → {nil}
        noindex:  -2.5 → -2.5  2.5 → 2.5  1e+300 → 1e+300  100.0 → 100.0  'Straße' → 'Straße'  'ÀÉ' → 'ÀÉ'  'İ' → 'İ'
        noindex:  '👩‍👧' → '👩‍👧'
        """#

    static let binaryResults = #"""
        add:to: min  min → -1.8446744073709552e+19  -1 → -9.223372036854776e+18  0 → -9223372036854775808
        add:to: min  1 → -9223372036854775807  0.5 → -9.223372036854776e+18  max → -1  inf → inf
        add:to: min  @1 → @-9.223372036854776e+18  7 → -9223372036854775801  -2.5 → -9.223372036854776e+18
        add:to: min  65 → -9223372036854775743
        add:to: -1  min → -9.223372036854776e+18  -1 → -2  0 → -1  1 → 0  0.5 → -0.5  max → 9223372036854775806
        add:to: -1  inf → inf  @1 → @0.0  7 → 6  -2.5 → -3.5  65 → 64
        add:to: 0  min → -9223372036854775808  -1 → -1  0 → 0  1 → 1  0.5 → 0.5  max → 9223372036854775807  inf → inf
        add:to: 0  @1 → @1.0  7 → 7  -2.5 → -2.5  65 → 65
        add:to: 1  min → -9223372036854775807  -1 → 0  0 → 1  1 → 2  0.5 → 1.5  max → 9.223372036854776e+18  inf → inf
        add:to: 1  @1 → @2.0  7 → 8  -2.5 → -1.5  65 → 66
        add:to: 0.5  min → -9.223372036854776e+18  -1 → -0.5  0 → 0.5  1 → 1.5  0.5 → 1.0  max → 9.223372036854776e+18
        add:to: 0.5  inf → inf  @1 → @1.5  7 → 7.5  -2.5 → -2.0  65 → 65.5
        add:to: max  min → -1  -1 → 9223372036854775806  0 → 9223372036854775807  1 → 9.223372036854776e+18
        add:to: max  0.5 → 9.223372036854776e+18  max → 1.8446744073709552e+19  inf → inf  @1 → @9.223372036854776e+18
        add:to: max  7 → 9.223372036854776e+18  -2.5 → 9.223372036854776e+18  65 → 9.223372036854776e+18
        add:to: inf  min → inf  -1 → inf  0 → inf  1 → inf  0.5 → inf  max → inf  inf → inf  @1 → @inf  7 → inf
        add:to: inf  -2.5 → inf  65 → inf
        add:to: @1  min → @-9.223372036854776e+18  -1 → @0.0  0 → @1.0  1 → @2.0  0.5 → @1.5
        add:to: @1  max → @9.223372036854776e+18  inf → @inf  7 → @8.0  -2.5 → @-1.5  65 → @66.0
        add:to: 7  min → -9223372036854775801  -1 → 6  0 → 7  1 → 8  0.5 → 7.5  max → 9.223372036854776e+18  inf → inf
        add:to: 7  @1 → @8.0  7 → 14  -2.5 → 4.5  65 → 72
        add:to: -2.5  min → -9.223372036854776e+18  -1 → -3.5  0 → -2.5  1 → -1.5  0.5 → -2.0
        add:to: -2.5  max → 9.223372036854776e+18  inf → inf  @1 → @-1.5  7 → 4.5  -2.5 → -5.0  65 → 62.5
        add:to: 65  min → -9223372036854775743  -1 → 64  0 → 65  1 → 66  0.5 → 65.5  max → 9.223372036854776e+18
        add:to: 65  inf → inf  @1 → @66.0  7 → 72  -2.5 → 62.5  65 → 130
        from:subtract: min  min → 0  -1 → -9223372036854775807  0 → -9223372036854775808  1 → -9.223372036854776e+18
        from:subtract: min  0.5 → -9.223372036854776e+18  max → -1.8446744073709552e+19  inf → -inf
        from:subtract: min  7 → -9.223372036854776e+18  -2.5 → -9.223372036854776e+18  65 → -9.223372036854776e+18
        from:subtract: -1  min → 9223372036854775807  -1 → 0  0 → -1  1 → -2  0.5 → -1.5  max → -9223372036854775808
        from:subtract: -1  inf → -inf  7 → -8  -2.5 → 1.5  65 → -66
        from:subtract: 0  min → 9.223372036854776e+18  -1 → 1  0 → 0  1 → -1  0.5 → -0.5  max → -9223372036854775807
        from:subtract: 0  inf → -inf  7 → -7  -2.5 → 2.5  65 → -65
        from:subtract: 1  min → 9.223372036854776e+18  -1 → 2  0 → 1  1 → 0  0.5 → 0.5  max → -9223372036854775806
        from:subtract: 1  inf → -inf  7 → -6  -2.5 → 3.5  65 → -64
        from:subtract: 0.5  min → 9.223372036854776e+18  -1 → 1.5  0 → 0.5  1 → -0.5  0.5 → 0.0
        from:subtract: 0.5  max → -9.223372036854776e+18  inf → -inf  7 → -6.5  -2.5 → 3.0  65 → -64.5
        from:subtract: max  min → 1.8446744073709552e+19  -1 → 9.223372036854776e+18  0 → 9223372036854775807
        from:subtract: max  1 → 9223372036854775806  0.5 → 9.223372036854776e+18  max → 0  inf → -inf
        from:subtract: max  7 → 9223372036854775800  -2.5 → 9.223372036854776e+18  65 → 9223372036854775742
        from:subtract: inf  min → inf  -1 → inf  0 → inf  1 → inf  0.5 → inf  max → inf  7 → inf  -2.5 → inf  65 → inf
        from:subtract: @1  min → @9.223372036854776e+18  -1 → @2.0  0 → @1.0  1 → @0.0  0.5 → @0.5
        from:subtract: @1  max → @-9.223372036854776e+18  inf → @-inf  @1 → 0.0  7 → @-6.0  -2.5 → @3.5  65 → @-64.0
        from:subtract: 7  min → 9.223372036854776e+18  -1 → 8  0 → 7  1 → 6  0.5 → 6.5  max → -9223372036854775800
        from:subtract: 7  inf → -inf  7 → 0  -2.5 → 9.5  65 → -58
        from:subtract: -2.5  min → 9.223372036854776e+18  -1 → -1.5  0 → -2.5  1 → -3.5  0.5 → -3.0
        from:subtract: -2.5  max → -9.223372036854776e+18  inf → -inf  7 → -9.5  -2.5 → 0.0  65 → -67.5
        from:subtract: 65  min → 9.223372036854776e+18  -1 → 66  0 → 65  1 → 64  0.5 → 64.5
        from:subtract: 65  max → -9223372036854775742  inf → -inf  7 → 58  -2.5 → 67.5  65 → 0
        multiply:by: min  min → 8.507059173023462e+37  -1 → 9.223372036854776e+18  0 → 0  1 → -9223372036854775808
        multiply:by: min  0.5 → -4.611686018427388e+18  max → -8.507059173023462e+37  inf → -inf
        multiply:by: min  7 → -6.456360425798343e+19  -2.5 → 2.305843009213694e+19  65 → -5.995191823955604e+20
        multiply:by: -1  min → 9.223372036854776e+18  -1 → 1  0 → 0  1 → -1  0.5 → -0.5  max → -9223372036854775807
        multiply:by: -1  inf → -inf  7 → -7  -2.5 → 2.5  65 → -65
        multiply:by: 0  min → 0  -1 → 0  0 → 0  1 → 0  0.5 → 0.0  max → 0  7 → 0  -2.5 → -0.0  65 → 0
        multiply:by: 1  min → -9223372036854775808  -1 → -1  0 → 0  1 → 1  0.5 → 0.5  max → 9223372036854775807
        multiply:by: 1  inf → inf  7 → 7  -2.5 → -2.5  65 → 65
        multiply:by: 0.5  min → -4.611686018427388e+18  -1 → -0.5  0 → 0.0  1 → 0.5  0.5 → 0.25
        multiply:by: 0.5  max → 4.611686018427388e+18  inf → inf  7 → 3.5  -2.5 → -1.25  65 → 32.5
        multiply:by: max  min → -8.507059173023462e+37  -1 → -9223372036854775807  0 → 0  1 → 9223372036854775807
        multiply:by: max  0.5 → 4.611686018427388e+18  max → 8.507059173023462e+37  inf → inf
        multiply:by: max  7 → 6.456360425798343e+19  -2.5 → -2.305843009213694e+19  65 → 5.995191823955604e+20
        multiply:by: inf  min → -inf  -1 → -inf  1 → inf  0.5 → inf  max → inf  inf → inf  7 → inf  -2.5 → -inf
        multiply:by: inf  65 → inf
        multiply:by: 7  min → -6.456360425798343e+19  -1 → -7  0 → 0  1 → 7  0.5 → 3.5  max → 6.456360425798343e+19
        multiply:by: 7  inf → inf  7 → 49  -2.5 → -17.5  65 → 455
        multiply:by: -2.5  min → 2.305843009213694e+19  -1 → 2.5  0 → -0.0  1 → -2.5  0.5 → -1.25
        multiply:by: -2.5  max → -2.305843009213694e+19  inf → -inf  7 → -17.5  -2.5 → 6.25  65 → -162.5
        multiply:by: 65  min → -5.995191823955604e+20  -1 → -65  0 → 0  1 → 65  0.5 → 32.5
        multiply:by: 65  max → 5.995191823955604e+20  inf → inf  7 → 455  -2.5 → -162.5  65 → 4225
        divide:by: min  min → 1  -1 → 9.223372036854776e+18  1 → -9223372036854775808  0.5 → -1.8446744073709552e+19
        divide:by: min  max → -1  inf → -0.0  7 → -1317624576693539401  -2.5 → 3.6893488147419105e+18
        divide:by: min  65 → -141898031336227320
        divide:by: -1  min → 0  -1 → 1  1 → -1  0.5 → -2.0  max → 0  inf → -0.0  7 → 0  -2.5 → 0.4  65 → 0
        divide:by: 0  min → 0  -1 → 0  1 → 0  0.5 → 0.0  max → 0  inf → 0.0  7 → 0  -2.5 → -0.0  65 → 0
        divide:by: 1  min → 0  -1 → -1  1 → 1  0.5 → 2.0  max → 0  inf → 0.0  7 → 0  -2.5 → -0.4  65 → 0
        divide:by: 0.5  min → -5.421010862427522e-20  -1 → -0.5  1 → 0.5  0.5 → 1.0  max → 5.421010862427522e-20
        divide:by: 0.5  inf → 0.0  7 → 0.07142857142857142  -2.5 → -0.2  65 → 0.007692307692307693
        divide:by: max  min → 0  -1 → -9223372036854775807  1 → 9223372036854775807  0.5 → 1.8446744073709552e+19
        divide:by: max  max → 1  inf → 0.0  7 → 1317624576693539401  -2.5 → -3.6893488147419105e+18
        divide:by: max  65 → 141898031336227320
        divide:by: inf  min → -inf  -1 → -inf  1 → inf  0.5 → inf  max → inf  7 → inf  -2.5 → -inf  65 → inf
        divide:by: 7  min → 0  -1 → -7  1 → 7  0.5 → 14.0  max → 0  inf → 0.0  7 → 1  -2.5 → -2.8  65 → 0
        divide:by: -2.5  min → 2.710505431213761e-19  -1 → 2.5  1 → -2.5  0.5 → -5.0  max → -2.710505431213761e-19
        divide:by: -2.5  inf → -0.0  7 → -0.35714285714285715  -2.5 → 1.0  65 → -0.038461538461538464
        divide:by: 65  min → 0  -1 → -65  1 → 65  0.5 → 130.0  max → 0  inf → 0.0  7 → 9  -2.5 → -26.0  65 → 1
        modulus:by: min  min → 0  -1 → 0  1 → 0  max → -1  7 → -1  -2.5 → 0  65 → -8
        modulus:by: -1  min → -1  -1 → 0  1 → 0  max → -1  7 → -1  -2.5 → -1  65 → -1
        modulus:by: 0  min → 0  -1 → 0  1 → 0  max → 0  7 → 0  -2.5 → 0  65 → 0
        modulus:by: 1  min → 1  -1 → 0  1 → 0  max → 1  7 → 1  -2.5 → 1  65 → 1
        modulus:by: 0.5  min → 0  -1 → 0  1 → 0  max → 0  7 → 0  -2.5 → 0  65 → 0
        modulus:by: max  min → 9223372036854775807  -1 → 0  1 → 0  max → 0  7 → 0  -2.5 → 1  65 → 7
        modulus:by: 7  min → 7  -1 → 0  1 → 0  max → 7  7 → 0  -2.5 → 1  65 → 7
        modulus:by: -2.5  min → -2  -1 → 0  1 → 0  max → -2  7 → -2  -2.5 → 0  65 → -2
        modulus:by: 65  min → 65  -1 → 0  1 → 0  max → 65  7 → 2  -2.5 → 1  65 → 0
        raise:toPower: min  min → 0.0  -1 → -1.0842021724855044e-19  0 → 1.0  1 → -9.223372036854776e+18  max → inf
        raise:toPower: min  inf → inf  7 → -5.678427533559429e+132  65 → -inf
        raise:toPower: -1  min → 1.0  -1 → -1.0  0 → 1.0  1 → -1.0  max → 1.0  inf → 1.0  7 → -1.0  65 → -1.0
        raise:toPower: 0  min → inf  -1 → inf  0 → 1.0  1 → 0.0  0.5 → 0.0  max → 0.0  inf → 0.0  7 → 0.0  -2.5 → inf
        raise:toPower: 0  65 → 0.0
        raise:toPower: 1  min → 1.0  -1 → 1.0  0 → 1.0  1 → 1.0  0.5 → 1.0  max → 1.0  inf → 1.0  7 → 1.0  -2.5 → 1.0
        raise:toPower: 1  65 → 1.0
        raise:toPower: 0.5  min → inf  -1 → 2.0  0 → 1.0  1 → 0.5  0.5 → 0.7071067811865476  max → 0.0  inf → 0.0
        raise:toPower: 0.5  7 → 0.0078125  -2.5 → 5.656854249492381  65 → 2.710505431213761e-20
        raise:toPower: max  min → 0.0  -1 → 1.0842021724855044e-19  0 → 1.0  1 → 9.223372036854776e+18
        raise:toPower: max  0.5 → 3037000499.97605  max → inf  inf → inf  7 → 5.678427533559429e+132
        raise:toPower: max  -2.5 → 3.870576744493647e-48  65 → inf
        raise:toPower: inf  min → 0.0  -1 → 0.0  0 → 1.0  1 → inf  0.5 → inf  max → inf  inf → inf  7 → inf
        raise:toPower: inf  -2.5 → 0.0  65 → inf
        raise:toPower: 7  min → 0.0  -1 → 0.14285714285714285  0 → 1.0  1 → 7.0  0.5 → 2.6457513110645907  max → inf
        raise:toPower: 7  inf → inf  7 → 823543.0  -2.5 → 0.007713560673657699  65 → 8.538323413450849e+54
        raise:toPower: -2.5  min → 0.0  -1 → -0.4  0 → 1.0  1 → -2.5  max → inf  inf → inf  7 → -610.3515625
        raise:toPower: -2.5  65 → -7.346839692639297e+25
        raise:toPower: 65  min → 0.0  -1 → 0.015384615384615385  0 → 1.0  1 → 65.0  0.5 → 8.06225774829855  max → inf
        raise:toPower: 65  inf → inf  7 → 4902227890625.0  -2.5 → 2.935733363058188e-05  65 → 6.908252164760921e+117
        bitwiseAnd:with: min  min → -9223372036854775808  -1 → -9223372036854775808  0 → 0  1 → 0  0.5 → 0  max → 0
        bitwiseAnd:with: min  7 → 0  -2.5 → -9223372036854775808  65 → 0
        bitwiseAnd:with: -1  min → -9223372036854775808  -1 → -1  0 → 0  1 → 1  0.5 → 0  max → 9223372036854775807
        bitwiseAnd:with: -1  7 → 7  -2.5 → -2  65 → 65
        bitwiseAnd:with: 0  min → 0  -1 → 0  0 → 0  1 → 0  0.5 → 0  max → 0  7 → 0  -2.5 → 0  65 → 0
        bitwiseAnd:with: 1  min → 0  -1 → 1  0 → 0  1 → 1  0.5 → 0  max → 1  7 → 1  -2.5 → 0  65 → 1
        bitwiseAnd:with: 0.5  min → 0  -1 → 0  0 → 0  1 → 0  0.5 → 0  max → 0  7 → 0  -2.5 → 0  65 → 0
        bitwiseAnd:with: max  min → 0  -1 → 9223372036854775807  0 → 0  1 → 1  0.5 → 0  max → 9223372036854775807
        bitwiseAnd:with: max  7 → 7  -2.5 → 9223372036854775806  65 → 65
        bitwiseAnd:with: 7  min → 0  -1 → 7  0 → 0  1 → 1  0.5 → 0  max → 7  7 → 7  -2.5 → 6  65 → 1
        bitwiseAnd:with: -2.5  min → -9223372036854775808  -1 → -2  0 → 0  1 → 0  0.5 → 0  max → 9223372036854775806
        bitwiseAnd:with: -2.5  7 → 6  -2.5 → -2  65 → 64
        bitwiseAnd:with: 65  min → 0  -1 → 65  0 → 0  1 → 1  0.5 → 0  max → 65  7 → 1  -2.5 → 64  65 → 65
        bitwiseOr:with: min  min → -9223372036854775808  -1 → -1  0 → -9223372036854775808  1 → -9223372036854775807
        bitwiseOr:with: min  0.5 → -9223372036854775808  max → -1  7 → -9223372036854775801  -2.5 → -2
        bitwiseOr:with: min  65 → -9223372036854775743
        bitwiseOr:with: -1  min → -1  -1 → -1  0 → -1  1 → -1  0.5 → -1  max → -1  7 → -1  -2.5 → -1  65 → -1
        bitwiseOr:with: 0  min → -9223372036854775808  -1 → -1  0 → 0  1 → 1  0.5 → 0  max → 9223372036854775807
        bitwiseOr:with: 0  7 → 7  -2.5 → -2  65 → 65
        bitwiseOr:with: 1  min → -9223372036854775807  -1 → -1  0 → 1  1 → 1  0.5 → 1  max → 9223372036854775807
        bitwiseOr:with: 1  7 → 7  -2.5 → -1  65 → 65
        bitwiseOr:with: 0.5  min → -9223372036854775808  -1 → -1  0 → 0  1 → 1  0.5 → 0  max → 9223372036854775807
        bitwiseOr:with: 0.5  7 → 7  -2.5 → -2  65 → 65
        bitwiseOr:with: max  min → -1  -1 → -1  0 → 9223372036854775807  1 → 9223372036854775807
        bitwiseOr:with: max  0.5 → 9223372036854775807  max → 9223372036854775807  7 → 9223372036854775807  -2.5 → -1
        bitwiseOr:with: max  65 → 9223372036854775807
        bitwiseOr:with: 7  min → -9223372036854775801  -1 → -1  0 → 7  1 → 7  0.5 → 7  max → 9223372036854775807
        bitwiseOr:with: 7  7 → 7  -2.5 → -1  65 → 71
        bitwiseOr:with: -2.5  min → -2  -1 → -1  0 → -2  1 → -1  0.5 → -2  max → -1  7 → -1  -2.5 → -2  65 → -1
        bitwiseOr:with: 65  min → -9223372036854775743  -1 → -1  0 → 65  1 → 65  0.5 → 65  max → 9223372036854775807
        bitwiseOr:with: 65  7 → 71  -2.5 → -1  65 → 65
        bitwiseXor:with: min  min → 0  -1 → 9223372036854775807  0 → -9223372036854775808  1 → -9223372036854775807
        bitwiseXor:with: min  0.5 → -9223372036854775808  max → -1  7 → -9223372036854775801
        bitwiseXor:with: min  -2.5 → 9223372036854775806  65 → -9223372036854775743
        bitwiseXor:with: -1  min → 9223372036854775807  -1 → 0  0 → -1  1 → -2  0.5 → -1  max → -9223372036854775808
        bitwiseXor:with: -1  7 → -8  -2.5 → 1  65 → -66
        bitwiseXor:with: 0  min → -9223372036854775808  -1 → -1  0 → 0  1 → 1  0.5 → 0  max → 9223372036854775807
        bitwiseXor:with: 0  7 → 7  -2.5 → -2  65 → 65
        bitwiseXor:with: 1  min → -9223372036854775807  -1 → -2  0 → 1  1 → 0  0.5 → 1  max → 9223372036854775806
        bitwiseXor:with: 1  7 → 6  -2.5 → -1  65 → 64
        bitwiseXor:with: 0.5  min → -9223372036854775808  -1 → -1  0 → 0  1 → 1  0.5 → 0  max → 9223372036854775807
        bitwiseXor:with: 0.5  7 → 7  -2.5 → -2  65 → 65
        bitwiseXor:with: max  min → -1  -1 → -9223372036854775808  0 → 9223372036854775807  1 → 9223372036854775806
        bitwiseXor:with: max  0.5 → 9223372036854775807  max → 0  7 → 9223372036854775800  -2.5 → -9223372036854775807
        bitwiseXor:with: max  65 → 9223372036854775742
        bitwiseXor:with: 7  min → -9223372036854775801  -1 → -8  0 → 7  1 → 6  0.5 → 7  max → 9223372036854775800
        bitwiseXor:with: 7  7 → 0  -2.5 → -7  65 → 70
        bitwiseXor:with: -2.5  min → 9223372036854775806  -1 → 1  0 → -2  1 → -1  0.5 → -2  max → -9223372036854775807
        bitwiseXor:with: -2.5  7 → -7  -2.5 → 0  65 → -65
        bitwiseXor:with: 65  min → -9223372036854775743  -1 → -66  0 → 65  1 → 64  0.5 → 65  max → 9223372036854775742
        bitwiseXor:with: 65  7 → 70  -2.5 → -65  65 → 0
        leftshift:by: min  min → -1  -1 → -4611686018427387904  0 → -9223372036854775808  1 → 0
        leftshift:by: min  0.5 → -9223372036854775808  max → 0  7 → 0  -2.5 → -2305843009213693952  65 → 0
        leftshift:by: -1  min → -1  -1 → -1  0 → -1  1 → -2  0.5 → -1  max → 0  7 → -128  -2.5 → -1  65 → 0
        leftshift:by: 0  min → 0  -1 → 0  0 → 0  1 → 0  0.5 → 0  max → 0  7 → 0  -2.5 → 0  65 → 0
        leftshift:by: 1  min → 0  -1 → 0  0 → 1  1 → 2  0.5 → 1  max → 0  7 → 128  -2.5 → 0  65 → 0
        leftshift:by: 0.5  min → 0  -1 → 0  0 → 0  1 → 0  0.5 → 0  max → 0  7 → 0  -2.5 → 0  65 → 0
        leftshift:by: max  min → 0  -1 → 4611686018427387903  0 → 9223372036854775807  1 → -2
        leftshift:by: max  0.5 → 9223372036854775807  max → 0  7 → -128  -2.5 → 2305843009213693951  65 → 0
        leftshift:by: 7  min → 0  -1 → 3  0 → 7  1 → 14  0.5 → 7  max → 0  7 → 896  -2.5 → 1  65 → 0
        leftshift:by: -2.5  min → -1  -1 → -1  0 → -2  1 → -4  0.5 → -2  max → 0  7 → -256  -2.5 → -1  65 → 0
        leftshift:by: 65  min → 0  -1 → 32  0 → 65  1 → 130  0.5 → 65  max → 0  7 → 8320  -2.5 → 16  65 → 0
        rightshift:by: min  min → 0  -1 → 0  0 → -9223372036854775808  1 → -4611686018427387904
        rightshift:by: min  0.5 → -9223372036854775808  max → -1  7 → -72057594037927936  -2.5 → 0  65 → -1
        rightshift:by: -1  min → 0  -1 → -2  0 → -1  1 → -1  0.5 → -1  max → -1  7 → -1  -2.5 → -4  65 → -1
        rightshift:by: 0  min → 0  -1 → 0  0 → 0  1 → 0  0.5 → 0  max → 0  7 → 0  -2.5 → 0  65 → 0
        rightshift:by: 1  min → 0  -1 → 2  0 → 1  1 → 0  0.5 → 1  max → 0  7 → 0  -2.5 → 4  65 → 0
        rightshift:by: 0.5  min → 0  -1 → 0  0 → 0  1 → 0  0.5 → 0  max → 0  7 → 0  -2.5 → 0  65 → 0
        rightshift:by: max  min → 0  -1 → -2  0 → 9223372036854775807  1 → 4611686018427387903
        rightshift:by: max  0.5 → 9223372036854775807  max → 0  7 → 72057594037927935  -2.5 → -4  65 → 0
        rightshift:by: 7  min → 0  -1 → 14  0 → 7  1 → 3  0.5 → 7  max → 0  7 → 0  -2.5 → 28  65 → 0
        rightshift:by: -2.5  min → 0  -1 → -4  0 → -2  1 → -1  0.5 → -2  max → -1  7 → -1  -2.5 → -8  65 → -1
        rightshift:by: 65  min → 0  -1 → 130  0 → 65  1 → 32  0.5 → 65  max → 0  7 → 0  -2.5 → 260  65 → 0
        """#

    static let aggregates = #"""
        none  sum 0  count 0  min nil  max nil  average 0  median nil  mode {}  stddev nil
        nils  sum 0  count 2  min nil  max nil  average 0  median nil  mode {}  stddev nil
        1  sum 1  count 1  min 1  max 1  average 1.0  median 1.0  mode {1}  stddev 0.0
        3 1 2  sum 6  count 3  min 1  max 3  average 2.0  median 2.0  mode {3, 1, 2}  stddev 0.816496580927726
        1 2.5 nil 4  sum 7.5  count 4  min 1  max 4  average 2.5  median 2.5  mode {1, 2.5, 4}
        1 2.5 nil 4  stddev 1.224744871391589
        max 1  sum 9.223372036854776e+18  count 2  min 1  max 9223372036854775807  average 4.611686018427388e+18
        max 1  median 4.611686018427388e+18  mode {9223372036854775807, 1}  stddev 4.611686018427388e+18
        inf -inf  sum nil  count 2  min -inf  max inf  average nil  median nil  mode {inf, -inf}  stddev nil
        texts  sum 0  count 3  min 'a'  max 'b'  average 0  median nil  mode {'b'}  stddev nil
        mixed  sum 3  count 4  min 'a'  max 'a'  average 1.5  median 1.5  mode {'a', 2, 1, @0.0}  stddev 0.5
        dates  sum 0  count 5  min @1.0  max @5.0  average 0  median nil  mode {@5.0, @2.0}  stddev nil
        equal  sum 9.0  count 5  min 1  max 3  average 1.8  median 2.0  mode {1, 2}  stddev 0.7483314773547883
        """#

    static let members = #"""
        of 3:  0 → 7  1 → nil  2 → 'c'  3 → nil  -1 → nil  2.9 → 'c'  -0.5 → 7  1e+300 → nil  nil → nil  'FIRST' → 7
        of 3:  'LAST' → 'c'  'SIZE' → 3  'first' → nil  @0.0 → nil
        of none:  nil  nil  0
        """#

    static let casts = #"""
        NSDate  -inf → @-inf  min → @-9.223372036854776e+18  -2^63 → @-9.223372036854776e+18  -1 → @-1.0  -0.5 → @-0.5
        NSDate  -0.0 → @-0.0  0 → @0.0  0.5 → @0.5  1 → @1.0  1.0 → @1.0  2^53 → @9007199254740992.0
        NSDate  2^53.0 → @9007199254740992.0  2^53+1 → @9007199254740992.0  max → @9.223372036854776e+18
        NSDate  2^63 → @9.223372036854776e+18  inf → @inf  '1' → @1.0  @0 → @0.0  @1 → @1.0  '12' → @12.0
        NSDate  '-1.5' → @-1.5  '1e400' → @inf
        NSNumber  -inf → -inf  min → -9223372036854775808  -2^63 → -9.223372036854776e+18  -1 → -1  -0.5 → -0.5
        NSNumber  -0.0 → -0.0  0 → 0  0.5 → 0.5  1 → 1  1.0 → 1.0  2^53 → 9007199254740992
        NSNumber  2^53.0 → 9007199254740992.0  2^53+1 → 9007199254740993  max → 9223372036854775807
        NSNumber  2^63 → 9.223372036854776e+18  inf → inf  '1' → 1  @0 → 0.0  @1 → 1.0  '12' → 12  '-1.5' → -1.5
        NSNumber  '1e400' → inf
          constant NSNumber 12.0
          constant NSNumber -1.5
          constant NSNumber CAST("inf", "NSNumber")
        NSDecimalNumber  -inf → -inf  min → -9223372036854775808  -2^63 → -9.223372036854776e+18  -1 → -1  -0.5 → -0.5
        NSDecimalNumber  -0.0 → -0.0  0 → 0  0.5 → 0.5  1 → 1  1.0 → 1.0  2^53 → 9007199254740992
        NSDecimalNumber  2^53.0 → 9007199254740992.0  2^53+1 → 9007199254740993  max → 9223372036854775807
        NSDecimalNumber  2^63 → 9.223372036854776e+18  inf → inf  '1' → 1  @0 → 0.0  @1 → 1.0  '12' → 12
        NSDecimalNumber  '-1.5' → -1.5  '1e400' → inf
          constant Decimal CAST("12", "NSDecimalNumber")
          constant Decimal CAST("-1.5", "NSDecimalNumber")
        NSString  -inf → '-inf'  min → '-9223372036854775808'  -2^63 → '-9.223372036854776e+18'  -1 → '-1'
        NSString  -0.5 → '-0.5'  -0.0 → '-0.0'  0 → '0'  0.5 → '0.5'  1 → '1'  1.0 → '1.0'  2^53 → '9007199254740992'
        NSString  2^53.0 → '9007199254740992.0'  2^53+1 → '9007199254740993'  max → '9223372036854775807'
        NSString  2^63 → '9.223372036854776e+18'  inf → 'inf'  '' → ''  'A' → 'A'  'a' → 'a'  'ab' → 'ab'  'é' → 'é'
        NSString  'é' → 'é'  '1' → '1'  uuid 1 → 'E6000000-0000-0000-0000-000000000001'
        NSString  uuid 2 → 'E6000000-0000-0000-0000-000000000002'  '12' → '12'  '-1.5' → '-1.5'  '1e400' → '1e400'
        NSString  'x' → 'x'  '' → ''  'E6000000-0000-0000-0000-000000000001' → 'E6000000-0000-0000-0000-000000000001'
        NSString  'AAE=' → 'AAE='  'https://a.example/' → 'https://a.example/'
        NSUUID  uuid 1 → uuid 1  uuid 2 → uuid 2  'E6000000-0000-0000-0000-000000000001' → uuid 1
          constant UUID CAST("E6000000-0000-0000-0000-000000000001", "NSUUID")
        NSURL  '' → ''  'A' → 'A'  'a' → 'a'  'ab' → 'ab'  'é' → 'é'  'é' → 'é'  '1' → '1'  '12' → '12'
        NSURL  '-1.5' → '-1.5'  '1e400' → '1e400'  'x' → 'x'  '' → ''
        NSURL  'E6000000-0000-0000-0000-000000000001' → 'E6000000-0000-0000-0000-000000000001'  'AAE=' → 'AAE='
        NSURL  'https://a.example/' → 'https://a.example/'
          constant URL CAST("12", "NSURL")
          constant URL CAST("-1.5", "NSURL")
          constant URL CAST("1e400", "NSURL")
          constant URL CAST("x", "NSURL")
          constant URL CAST("E6000000-0000-0000-0000-000000000001", "NSURL")
          constant URL CAST("AAE=", "NSURL")
          constant URL CAST("https://a.example/", "NSURL")
        NSData  '' → <>  <> → <>  <00> → <0>  <0001> → <0 1>  <01> → <1>  '' → <>  'AAE=' → <0 1>
          constant Data CAST("", "NSData")
          constant Data CAST("AAE=", "NSData")
        """#

    static let objects = #"""
        nil: nil  nil  nil
        null: nil  nil  nil
        text: 'a'  'a'  a
        part: 'b'  'b'  b
        character: 'é'  'é'  é
        NSString: 'n'  'n'  n
        true: 1  1  1
        false: 0  0  0
        Int: -4  -4  -4
        Int8: -8  -8  -8
        UInt8: 200  200  200
        Int64: -9223372036854775808  -9223372036854775808  -9223372036854775808
        UInt64: 1.8446744073709552e+19  1.8446744073709552e+19  1.8446744073709552e+19
        UInt: 5  5  5
        Float: 0.10000000149011612  0.10000000149011612  0.10000000149011612
        Double: 0.1  0.1  0.1
        NaN: nil  nil  nil
        infinite: -inf  -inf  -inf
        NSNumber true: 1  1  1
        NSNumber: 3  3  3
        NSNumber 2.5: 2.5  2.5  2.5
        NSNumber float: 2.5  2.5  2.5
        NSNumber 2^64: 1.8446744073709552e+19  1.8446744073709552e+19  1.8446744073709552e+19
        NSNumber 7: 7  7  7
        NSNumber NaN: nil  nil  nil
        Decimal: 3.03  3.03  3.03
        Decimal NaN: nil  nil  nil
        NSDecimalNumber: -0.25  -0.25  -0.25
        Date: @3.0  @3.0  2001-01-01 00:00:03 +0000
        NSDate: @4.0  @4.0  2001-01-01 00:00:04 +0000
        URL: 'https://a.example/b'  'https://a.example/b'  https://a.example/b
        UUID: uuid 9  uuid 9  E6000000-0000-0000-0000-000000000009
        Data: <1 ff>  <1 ff>  2 bytes
        enum: 'red'  'red'  red
        number enum: -3  -3  -3
        hashable: 5  5  5
        array: -  {1, 2}  [1, 2]
        mixed: -  {1, 'a', nil}  [1, "a", <null>]
        empty: -  {}  []
        NSArray: -  {1, {2}}  [1, [2]]
        set: -  {'s'}  ["s"]
        NSSet: -  {3}  [3]
        NSOrderedSet: -  {2, 1}  [2, 1]
        dictionary: -  {1}  [1]
        optionals: -  {1, nil}  [1, <null>]
        plain: -  nil  nil
        toy: 1.1.3  1.1.3  PredicateIdentity(store: 1, entity: 1, key: 3)
        range: -  {1, 2}  [1, 2]
        """#

    static let sets = #"""
        none: {} contains: .
        nil: {} with nil contains: nil NaN @NaN.
        1 2 nil: {1, 2} with nil contains: nil NaN @NaN 1 1.0.
        1 0.5: {1, 0.5} contains: 0.5 1 1.0.
        doubles: {-0.0, 1.0} contains: -0.0 0 1 1.0.
        a: {'a', 'é'} contains: 'a' 'é'.
        A [c]: {'A'} contains: 'A' 'a'.
        é [d]: {'é'} contains: 'é' 'é'.
        a 1: {'a', 1} with nil contains: nil NaN @NaN 1 1.0 'a'.
        A 1 [c]: {'A', 1} contains: 1 1.0 'A' 'a'.
        1.1.1: {1.1.1} contains: 1.1.1.
        dates: {@0.0} with nil contains: nil NaN @NaN @0.
        data: {<0>} contains: <00>.
        uuid 1: {uuid 1} contains: uuid 1.
        {1}: {{1}} contains: {1} {1.0}.
        """#
}
