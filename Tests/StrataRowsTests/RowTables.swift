extension RowTableTests {
    static let taken = #"""
        boolean  null → nil  true → 1  5 → 1  -70000 → 1  2^40 → 1  UInt64 max ✗  2.9 → 1  -0.5 → 0  1e300 ✗  NaN ✗
        boolean  Float 0.1 → 0  NSNumber 2.5 → 1  NSNumber 7 → 1  Decimal 1.25 → 1  NSDecimalNumber → 1  'a' ✗
        boolean  NSString ✗  date ✗  NSDate ✗  data ✗  uuid ✗  url ✗  list ✗
        data  null → nil  true ✗  5 ✗  -70000 ✗  2^40 ✗  UInt64 max ✗  2.9 ✗  -0.5 ✗  1e300 ✗  NaN ✗  Float 0.1 ✗
        data  NSNumber 2.5 ✗  NSNumber 7 ✗  Decimal 1.25 ✗  NSDecimalNumber ✗  'a' ✗  NSString ✗  date ✗  NSDate ✗
        data  data → <1 2>  uuid ✗  url ✗  list ✗
        date  null → nil  true ✗  5 ✗  -70000 ✗  2^40 ✗  UInt64 max ✗  2.9 ✗  -0.5 ✗  1e300 ✗  NaN ✗  Float 0.1 ✗
        date  NSNumber 2.5 ✗  NSNumber 7 ✗  Decimal 1.25 ✗  NSDecimalNumber ✗  'a' ✗  NSString ✗  date → @9.0
        date  NSDate → @8.0  data ✗  uuid ✗  url ✗  list ✗
        decimal  null → nil  true → 1  5 → 5  -70000 → -70000  2^40 → 1099511627776  UInt64 max ✗  2.9 → 2.9
        decimal  -0.5 → -0.5  1e300 → NaN  NaN → NaN  Float 0.1 → 0.10000000149011611648  NSNumber 2.5 → 2.5
        decimal  NSNumber 7 → 7  Decimal 1.25 → 1.25  NSDecimalNumber → -3.5  'a' ✗  NSString ✗  date ✗  NSDate ✗
        decimal  data ✗  uuid ✗  url ✗  list ✗
        double  null → nil  true → 1.0  5 → 5.0  -70000 → -70000.0  2^40 → 1099511627776.0
        double  UInt64 max → 1.8446744073709552e+19  2.9 → 2.9  -0.5 → -0.5  1e300 → 1e+300  NaN → nan
        double  Float 0.1 → 0.10000000149011612  NSNumber 2.5 → 2.5  NSNumber 7 → 7.0  Decimal 1.25 → 1.25
        double  NSDecimalNumber → -3.5  'a' ✗  NSString ✗  date ✗  NSDate ✗  data ✗  uuid ✗  url ✗  list ✗
        float  null → nil  true → 1.0  5 → 5.0  -70000 → -70000.0  2^40 → 1.0995116e+12  UInt64 max → 1.8446744e+19
        float  2.9 → 2.9  -0.5 → -0.5  1e300 → inf  NaN → nan  Float 0.1 → 0.1  NSNumber 2.5 → 2.5  NSNumber 7 → 7.0
        float  Decimal 1.25 → 1.25  NSDecimalNumber → -3.5  'a' ✗  NSString ✗  date ✗  NSDate ✗  data ✗  uuid ✗  url ✗
        float  list ✗
        integer16  null → nil  true → 1  5 → 5  -70000 ✗  2^40 ✗  UInt64 max ✗  2.9 → 2  -0.5 → 0  1e300 ✗  NaN ✗
        integer16  Float 0.1 → 0  NSNumber 2.5 → 2  NSNumber 7 → 7  Decimal 1.25 → 1  NSDecimalNumber → -3  'a' ✗
        integer16  NSString ✗  date ✗  NSDate ✗  data ✗  uuid ✗  url ✗  list ✗
        integer32  null → nil  true → 1  5 → 5  -70000 → -70000  2^40 ✗  UInt64 max ✗  2.9 → 2  -0.5 → 0  1e300 ✗
        integer32  NaN ✗  Float 0.1 → 0  NSNumber 2.5 → 2  NSNumber 7 → 7  Decimal 1.25 → 1  NSDecimalNumber → -3
        integer32  'a' ✗  NSString ✗  date ✗  NSDate ✗  data ✗  uuid ✗  url ✗  list ✗
        integer64  null → nil  true → 1  5 → 5  -70000 → -70000  2^40 → 1099511627776  UInt64 max ✗  2.9 → 2  -0.5 → 0
        integer64  1e300 ✗  NaN ✗  Float 0.1 → 0  NSNumber 2.5 → 2  NSNumber 7 → 7  Decimal 1.25 → 1
        integer64  NSDecimalNumber → -3  'a' ✗  NSString ✗  date ✗  NSDate ✗  data ✗  uuid ✗  url ✗  list ✗
        objectID  null → nil  true ✗  5 ✗  -70000 ✗  2^40 ✗  UInt64 max ✗  2.9 ✗  -0.5 ✗  1e300 ✗  NaN ✗  Float 0.1 ✗
        objectID  NSNumber 2.5 ✗  NSNumber 7 ✗  Decimal 1.25 ✗  NSDecimalNumber ✗  'a' ✗  NSString ✗  date ✗  NSDate ✗
        objectID  data → <1 2>  uuid ✗  url ✗  list ✗
        string  null → nil  true ✗  5 ✗  -70000 ✗  2^40 ✗  UInt64 max ✗  2.9 ✗  -0.5 ✗  1e300 ✗  NaN ✗  Float 0.1 ✗
        string  NSNumber 2.5 ✗  NSNumber 7 ✗  Decimal 1.25 ✗  NSDecimalNumber ✗  'a' → a  NSString → b  date ✗
        string  NSDate ✗  data ✗  uuid ✗  url ✗  list ✗
        transformable  null → nil  true ✗  5 ✗  -70000 ✗  2^40 ✗  UInt64 max ✗  2.9 ✗  -0.5 ✗  1e300 ✗  NaN ✗
        transformable  Float 0.1 ✗  NSNumber 2.5 ✗  NSNumber 7 ✗  Decimal 1.25 ✗  NSDecimalNumber ✗  'a' ✗  NSString ✗
        transformable  date ✗  NSDate ✗  data → <1 2>  uuid ✗  url ✗  list ✗
        undefined  null → nil  true ✗  5 ✗  -70000 ✗  2^40 ✗  UInt64 max ✗  2.9 ✗  -0.5 ✗  1e300 ✗  NaN ✗  Float 0.1 ✗
        undefined  NSNumber 2.5 ✗  NSNumber 7 ✗  Decimal 1.25 ✗  NSDecimalNumber ✗  'a' ✗  NSString ✗  date ✗
        undefined  NSDate ✗  data → <1 2>  uuid ✗  url ✗  list ✗
        uri  null → nil  true ✗  5 ✗  -70000 ✗  2^40 ✗  UInt64 max ✗  2.9 ✗  -0.5 ✗  1e300 ✗  NaN ✗  Float 0.1 ✗
        uri  NSNumber 2.5 ✗  NSNumber 7 ✗  Decimal 1.25 ✗  NSDecimalNumber ✗  'a' ✗  NSString ✗  date ✗  NSDate ✗
        uri  data ✗  uuid ✗  url → a:b  list ✗
        uuid  null → nil  true ✗  5 ✗  -70000 ✗  2^40 ✗  UInt64 max ✗  2.9 ✗  -0.5 ✗  1e300 ✗  NaN ✗  Float 0.1 ✗
        uuid  NSNumber 2.5 ✗  NSNumber 7 ✗  Decimal 1.25 ✗  NSDecimalNumber ✗  'a' ✗  NSString ✗  date ✗  NSDate ✗
        uuid  data ✗  uuid → 01000000-0000-0000-0000-000000000002  url ✗  list ✗
        """#

    static let worked = #"""
        boolean batch  nil → nil  NaN → nil  0 → 0  5 → 1  -40000 → 1  2^40 → 1  2.9 → 1  -0.4 → 1  1e300 ✗  inf ✗
        boolean batch  @9 → 1
        boolean derived  nil → nil  NaN → nil  0 → 0  5 → 1  -40000 → 1  2^40 → 1  2.9 → 1  -0.4 → 0  1e300 → nil
        boolean derived  inf → nil  'a' → nil  @9 → 1  <1> → nil  uuid → nil  entity → nil  list → nil
        data batch  nil → nil  <1> → <1>
        data derived  nil → nil  NaN → nil  0 → nil  5 → nil  -40000 → nil  2^40 → nil  2.9 → nil  -0.4 → nil
        data derived  1e300 → nil  inf → nil  'a' → nil  @9 → nil  <1> → <1>  uuid → nil  entity → nil  list → nil
        date batch  nil → nil  NaN → nil  0 → @0.0  5 → @5.0  -40000 → @-40000.0  2^40 → @1099511627776.0  2.9 → @2.9
        date batch  -0.4 → @-0.4  1e300 → @1e+300  inf → @inf  @9 → @9.5
        date derived  nil → nil  NaN → @nan  0 → @0.0  5 → @5.0  -40000 → @-40000.0  2^40 → @1099511627776.0
        date derived  2.9 → @2.9  -0.4 → @-0.4  1e300 → @1e+300  inf → @inf  'a' → nil  @9 → @9.5  <1> → nil
        date derived  uuid → nil  entity → nil  list → nil
        decimal batch  nil → nil  NaN → nil  0 → 0  5 → 5  -40000 → -40000  2^40 → 1099511627776  2.9 → 2.9
        decimal batch  -0.4 → -0.4  1e300 ✗  inf ✗  @9 → 9.5
        decimal derived  nil → nil  NaN → nil  0 → 0  5 → 5  -40000 → -40000  2^40 → 1099511627776  2.9 → 2.9
        decimal derived  -0.4 → -0.4  1e300 → nil  inf → nil  'a' → nil  @9 → nil  <1> → nil  uuid → nil  entity → nil
        decimal derived  list → nil
        double batch  nil → nil  NaN → nil  0 → 0.0  5 → 5.0  -40000 → -40000.0  2^40 → 1099511627776.0  2.9 → 2.9
        double batch  -0.4 → -0.4  1e300 → 1e+300  inf → inf  @9 → 9.5
        double derived  nil → nil  NaN → nan  0 → 0.0  5 → 5.0  -40000 → -40000.0  2^40 → 1099511627776.0  2.9 → 2.9
        double derived  -0.4 → -0.4  1e300 → 1e+300  inf → inf  'a' → nil  @9 → 9.5  <1> → nil  uuid → nil
        double derived  entity → nil  list → nil
        float batch  nil → nil  NaN → nil  0 → 0.0  5 → 5.0  -40000 → -40000.0  2^40 → 1.0995116e+12  2.9 → 2.9
        float batch  -0.4 → -0.4  1e300 → inf  inf → inf  @9 → 9.5
        float derived  nil → nil  NaN → nan  0 → 0.0  5 → 5.0  -40000 → -40000.0  2^40 → 1.0995116e+12  2.9 → 2.9
        float derived  -0.4 → -0.4  1e300 → inf  inf → inf  'a' → nil  @9 → 9.5  <1> → nil  uuid → nil  entity → nil
        float derived  list → nil
        integer16 batch  nil → nil  NaN → nil  0 → 0  5 → 5  -40000 ✗  2^40 ✗  2.9 → 2  -0.4 → 0  1e300 ✗  inf ✗
        integer16 batch  @9 → 9
        integer16 derived  nil → nil  NaN → nil  0 → 0  5 → 5  -40000 → 25536  2^40 → 0  2.9 → 2  -0.4 → 0
        integer16 derived  1e300 → nil  inf → nil  'a' → nil  @9 → 9  <1> → nil  uuid → nil  entity → nil  list → nil
        integer32 batch  nil → nil  NaN → nil  0 → 0  5 → 5  -40000 → -40000  2^40 ✗  2.9 → 2  -0.4 → 0  1e300 ✗
        integer32 batch  inf ✗  @9 → 9
        integer32 derived  nil → nil  NaN → nil  0 → 0  5 → 5  -40000 → -40000  2^40 → 0  2.9 → 2  -0.4 → 0
        integer32 derived  1e300 → nil  inf → nil  'a' → nil  @9 → 9  <1> → nil  uuid → nil  entity → nil  list → nil
        integer64 batch  nil → nil  NaN → nil  0 → 0  5 → 5  -40000 → -40000  2^40 → 1099511627776  2.9 → 2  -0.4 → 0
        integer64 batch  1e300 ✗  inf ✗  @9 → 9
        integer64 derived  nil → nil  NaN → nil  0 → 0  5 → 5  -40000 → -40000  2^40 → 1099511627776  2.9 → 2
        integer64 derived  -0.4 → 0  1e300 → nil  inf → nil  'a' → nil  @9 → 9  <1> → nil  uuid → nil  entity → nil
        integer64 derived  list → nil
        objectID batch  nil → nil
        objectID derived  nil → nil  NaN → nil  0 → nil  5 → nil  -40000 → nil  2^40 → nil  2.9 → nil  -0.4 → nil
        objectID derived  1e300 → nil  inf → nil  'a' → nil  @9 → nil  <1> → <1>  uuid → nil  entity → nil  list → nil
        string batch  nil → nil  'a' → a
        string derived  nil → nil  NaN → nil  0 → nil  5 → nil  -40000 → nil  2^40 → nil  2.9 → nil  -0.4 → nil
        string derived  1e300 → nil  inf → nil  'a' → a  @9 → nil  <1> → nil  uuid → nil  entity → nil  list → nil
        transformable batch  nil → nil
        transformable derived  nil → nil  NaN → nil  0 → nil  5 → nil  -40000 → nil  2^40 → nil  2.9 → nil  -0.4 → nil
        transformable derived  1e300 → nil  inf → nil  'a' → nil  @9 → nil  <1> → <1>  uuid → nil  entity → nil
        transformable derived  list → nil
        undefined batch  nil → nil  <1> → <1>
        undefined derived  nil → nil  NaN → nil  0 → nil  5 → nil  -40000 → nil  2^40 → nil  2.9 → nil  -0.4 → nil
        undefined derived  1e300 → nil  inf → nil  'a' → nil  @9 → nil  <1> → <1>  uuid → nil  entity → nil
        undefined derived  list → nil
        uri batch  nil → nil  'a' → a
        uri derived  nil → nil  NaN → nil  0 → nil  5 → nil  -40000 → nil  2^40 → nil  2.9 → nil  -0.4 → nil
        uri derived  1e300 → nil  inf → nil  'a' → a  @9 → nil  <1> → nil  uuid → nil  entity → nil  list → nil
        uuid batch  nil → nil  uuid → 01000000-0000-0000-0000-000000000002
        uuid derived  nil → nil  NaN → nil  0 → nil  5 → nil  -40000 → nil  2^40 → nil  2.9 → nil  -0.4 → nil
        uuid derived  1e300 → nil  inf → nil  'a' → nil  @9 → nil  <1> → nil
        uuid derived  uuid → 01000000-0000-0000-0000-000000000002  entity → nil  list → nil
        """#

    static let types = #"""
        0 Undefined, data, transformable: null bool integer double decimal date string uri uuid data transformable composite reference entity
        100 Integer 16, int, integer: null bool integer double decimal date
        200 Integer 32, int, integer: null bool integer double decimal date
        300 Integer 64, int, integer: null bool integer double decimal date
        400 Decimal, decimal, decimal: null bool integer double decimal date
        500 Double, double, double: null bool integer double decimal date
        600 Float, double, double: null bool integer double decimal date
        700 String, string, string: null bool integer double decimal string uri
        800 Boolean, int, bool: null bool integer double decimal date
        900 Date, double, date: null bool integer double decimal date
        1000 Binary Data, data, data: null data transformable
        1100 UUID, uuid, uuid: null uuid
        1200 URI, string, uri: null string uri
        1800 Transformable, data, transformable: null transformable
        2000 Object ID, data, transformable: null reference
        2100 Composite, data, transformable: null
        """#

    static let derivations = #"""
        'uppercase:(name)' → function(StrataRows.Derivation.TextFunction.uppercase, attribute: "name")
        'uppercase(name)' → function(StrataRows.Derivation.TextFunction.uppercase, attribute: "name")
        'lowercase:(name)' → function(StrataRows.Derivation.TextFunction.lowercase, attribute: "name")
        'canonical:( name )' → function(StrataRows.Derivation.TextFunction.canonical, attribute: "name")
        ' canonical:(name) ' → function(StrataRows.Derivation.TextFunction.canonical, attribute: "name")
        'canonical:(a.b)' → none
        'canonical:()' → none
        'count:(items)' → aggregate(StrataRows.Derivation.Aggregate.count, relationship: "items", attribute: nil)
        'count(items)' → aggregate(StrataRows.Derivation.Aggregate.count, relationship: "items", attribute: nil)
        'count:(items.price)' → none
        'sum:(items.price)' → aggregate(StrataRows.Derivation.Aggregate.sum, relationship: "items", attribute: Optional("price"))
        'sum:(items)' → none
        'min:(items.price)' → aggregate(StrataRows.Derivation.Aggregate.min, relationship: "items", attribute: Optional("price"))
        'max:(items.price)' → aggregate(StrataRows.Derivation.Aggregate.max, relationship: "items", attribute: Optional("price"))
        'avg:(items.price)' → aggregate(StrataRows.Derivation.Aggregate.average, relationship: "items", attribute: Optional("price"))
        'average:(items.price)' → aggregate(StrataRows.Derivation.Aggregate.average, relationship: "items", attribute: Optional("price"))
        'sum:(a.b.c)' → none
        'median:(items.price)' → none
        'now()' → now
        'now:()' → now
        'now(1)' → none
        'owner.name' → copy(relationship: "owner", attribute: "name")
        'owner' → none
        'a.b.c' → none
        '.b' → none
        'a.' → none
        'items.@count' → none
        '@count.a' → none
        '' → none
        '(a)' → none
        'sum:(items.price' → copy(relationship: "sum:(items", attribute: "price")
        'name)' → none
        """#

    static let unfiltered = #"""
        integer16 == 0.5
        integer16 > 0.5
        integer16 == -0.0
        integer64 == 0.5
        integer64 > 0.5
        integer64 == -0.0
        boolean == 0.5
        boolean > 0.5
        boolean == -0.0
        double == 1
        double != 1
        double < 1
        double <= 1
        double > 1
        double >= 1
        double == nil
        double != nil
        float == 1
        float != 1
        float < 1
        float <= 1
        float > 1
        float >= 1
        float == nil
        float != nil
        date == nil
        date != nil
        integer16 == 1 AND double > 0
        integer16 == 1 OR double > 0
        NOT (integer16 == 1 OR double > 0)
        integer16 == 1 AND string == 'a'
        integer16 == 1 OR string == 'a'
        NOT string == 'a'
        integer16 == integer64
        integer16 BETWEEN {1, 2}
        integer16 IN {1, 2}
        double == CAST('inf', 'NSNumber')
        other == nil
        other.integer16 == 1
        others.@count == 0
        decimal == 1
        string BEGINSWITH 'a'
        ANY others.integer16 == 1
        uuid == nil
        double == nil OR boolean == YES
        """#

    static let related = #"""
        Animal name == 'a': []
        Animal owner == nil: []
        Animal owner.pets.@count == 1: [1, 4]
        Animal ANY owner.pets.name == 'a': [1, 4]
        Person pets.@count == 1: []
        Person ANY pets.name == 'a': [1]
        Person SUBQUERY(pets, $p, $p.name == 'a').@count == 1: [1]
        Person SUBQUERY(pets, $p, $p.owner.pets.@count == 1).@count == 1: [1, 4]
        Person pets.@max.name == 'a': [1]
        Person ANY pets == SELF: [1]
        Cat NOT (lives BETWEEN {1, 2} OR owner.pets[SIZE] == 2): [1, 4]
        Animal TERNARY(owner == nil, 'a', 'b') == name: []
        Animal name IN {'a'} AND uppercase(name) LIKE 'A*': []
        Animal ANY CAST(owner.pets, 'Cat').lives > 1: [1, 4]
        Animal CAST(SELF, 'Cat').lives > 1: []
        """#
}
