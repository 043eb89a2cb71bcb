extension ShapeTableTests {
    static let trees = #"""
        age == 1 → 0.age:integer = 1:integer 1 6 6
        age != 1 → not 0.age:integer = 1:integer 1 7 7
        age < 1 → 0.age:integer < 1:integer 1 6 6
        age <= 1 → 0.age:integer <= 1:integer 1 6 6
        age > 1 → 0.age:integer > 1:integer 1 6 6
        age >= 1 → 0.age:integer >= 1:integer 1 6 6
        1 < age → 1:integer < 0.age:integer 1 8 8
        1 == age → 0.age:integer = 1:integer 1 6 6
        age == 1.5 → 0.age:integer = 1.5:double 1 6 6
        score == 2 → 0.score:double = 2:integer 1 6 6
        name == 'a' → 0.name:string = 'a':string 1 6 6
        name ==[c] 'a' → 0.name:string =[1] 'a':string 1 6 6
        name ==[d] 'a' → 0.name:string =[2] 'a':string 1 6 6
        name ==[cd] 'a' → 0.name:string =[3] 'a':string 1 6 6
        name ==[n] 'a' → 0.name:string = 'a':string 1 6 6
        name ==[l] 'a' → 0.name:string =[4] 'a':string 1 6 6
        site == 'a' → 0.site:uri = 'a':string 1 6 6
        name <[c] 'a' → 0.name:string <[1] 'a':string 1 6 6
        name == nick → 0.name:string = 0.nick:string 1 8 8
        name ==[c] nick → 0.name:string =[1] 0.nick:string 1 8 8
        age ==[c] 1 → 0.age:integer = 1:integer 1 6 6
        active == YES → 0.active:bool = 1:integer 1 6 6
        wage == 3.03 → 0.wage:decimal = 3.03:double 1 6 6
        born > CAST(5, 'NSDate') → 0.born:date > @5.0:date 1 6 6
        uid == CAST('E6000000-0000-0000-0000-000000000001', 'NSUUID') → 0.uid:uuid = uuid 1:uuid 1 6 6
        photo == CAST('AAE=', 'NSData') → 0.photo:data = <0 1>:data 1 6 6
        blob == nil → 0.blob:transformable is nil 1 6 6
        blob != nil → not 0.blob:transformable is nil 1 7 7
        age == nil → 0.age:integer is nil 1 6 6
        nil == age → 0.age:integer is nil 1 6 6
        age > nil → false 1 1 1
        boss == nil → 0.boss is nil 1 6 6
        boss != nil → not 0.boss is nil 1 7 7
        SELF == nil → false 1 1 1
        SELF == boss → 0 = 0.boss 1 8 8
        boss == boss.boss → 0.boss = 0.boss.boss 1 8 8
        boss.age == 1 → 0.boss.age:integer = 1:integer 1 6 6
        boss.boss.age == 1 → 0.boss.boss.age:integer = 1:integer 1 6 6
        objectID == boss → 0 = 0.boss 1 8 8
        address == nil → 0.address.street:string is nil 1 6 6
        address != nil → not 0.address.street:string is nil 1 7 7
        address.street == 'a' → 0.address.street:string = 'a':string 1 6 6
        entity == $person → 0.entity:entity = entity 1:entity 1 6 6
        boss.entity == $item → 0.boss.entity:entity = entity 2:entity 1 6 6
        entity IN {$person, $item} → 0.entity:entity in {entity 1, entity 2} 1 16 16
        name BEGINSWITH 'a' → 0.name:string beginsWith 'a':string 1 8 8
        name BEGINSWITH[c] 'a' → 0.name:string beginsWith[1] 'a':string 1 8 8
        name ENDSWITH 'a' → 0.name:string endsWith 'a':string 1 8 8
        name CONTAINS 'a' → 0.name:string contains 'a':string 1 8 8
        'a' IN name → 0.name:string contains 'a':string 1 8 8
        name LIKE 'a*' → 0.name:string like 'a*':string 1 8 8
        name LIKE[cd] 'a*' → 0.name:string like[3] 'a*':string 1 8 8
        name MATCHES 'a.' → 0.name:string matches 'a.':string 1 8 8 costly
        name LIKE nick → 0.name:string like 0.nick:string each 1 10 10 costly
        name MATCHES nick → 0.name:string matches 0.nick:string each 1 10 10 costly
        nil BEGINSWITH name → false 1 1 1
        name CONTAINS nil → false 1 1 1
        age BETWEEN {1, 2} → 0.age:integer in 1:integer…2:integer 1 5 5
        age BETWEEN {nil, 2} → false 1 1 1
        name BETWEEN[c] {'a', 'b'} → 0.name:string in 'a':string…'b':string[1] 1 5 5
        age BETWEEN {level, 2} → 0.age:integer in 0.level:integer…2:integer 1 7 7
        3 BETWEEN {1, 5} → true 1 1 1
        3 BETWEEN {4, 5} → false 1 1 1
        3 BETWEEN {1, 2} → false 1 1 1
        age BETWEEN $pair → 0.age:integer in 3:integer…4:integer 1 5 5
        age IN {1, 2} → 0.age:integer in {1, 2} 1 16 16
        age IN {1, 2, nil} → 0.age:integer in {1, 2, nil} 1 16 16
        age IN {} → false 1 1 1
        age IN {nil} → 0.age:integer is nil 1 6 6
        name IN {'a', 'A'} → 0.name:string in {'a', 'A'} 1 16 16
        name IN[c] {'a', 'A'} → 0.name:string in {'a'}[1] 1 16 16
        age IN {1, level} → (0.age:integer = 1:integer | 0.age:integer = 0.level:integer) 1 9 11
        name IN {1, 2.5, 'x'} → 0.name:string in {'1', '2.5', 'x'} 1 16 16
        1 IN {1, 2} → true 1 1 1
        3 IN {1, 2} → false 1 1 1
        NOT age IN {1} → not 0.age:integer in {1} 1 17 17
        boss IN $people → 0.boss in {1.1.7} 1 16 16
        age IN $numbers → 0.age:integer in {1.0, 2.5} 1 16 16
        age IN ({1, 2} UNION {3}) → 0.age:integer in {1, 2, 3} 1 16 16
        age IN ({1, 2} INTERSECT {2}) → 0.age:integer in {2} 1 16 16
        age IN ({1, 2} MINUS {2}) → 0.age:integer in {1} 1 16 16
        age IN (items.n UNION {1}) → (one of 0.items as 1: 0.age:integer = 1.n:integer | 0.age:integer in {1}) 2 19 19
        age IN (items.n INTERSECT friends.age) → (one of 0.items as 1: 0.age:integer = 1.n:integer & one of 0.friends as 2: 0.age:integer = 2.age:integer) 3 19 19
        age IN (items.n MINUS friends.age) → (one of 0.items as 1: 0.age:integer = 1.n:integer & not one of 0.friends as 2: 0.age:integer = 2.age:integer) 3 19 20
        name IN[c] (items.title INTERSECT friends.name) → one of 0.items as 1: (0.name:string =[1] 1.title:string & one of 0.friends as 2: 1.title:string = 2.name:string) 3 26 28 costly
        name IN[c] (items.title MINUS {'a'}) → one of 0.items as 1: (0.name:string =[1] 1.title:string & not 1.title:string in {'a'}) 2 26 28
        ANY items.n == 1 → one of 0.items as 1: 1.n:integer = 1:integer 2 15 15
        ALL items.n == 1 → not one of 0.items as 1: not 1.n:integer = 1:integer 2 17 17
        NONE items.n == 1 → not one of 0.items as 1: 1.n:integer = 1:integer 2 16 16
        ANY items.n != 1 → one of 0.items as 1: not 1.n:integer = 1:integer 2 16 16
        ANY items.n == age → one of 0.items as 1: 1.n:integer = 0.age:integer 2 17 17
        ANY friends.items.n == 1 → one of 0.friends as 1: one of 1.items as 2: 2.n:integer = 1:integer 3 24 24 costly
        ANY items.owner == SELF → one of 0.items as 1: 1.owner = 0 2 17 17
        ANY items == nil → false 2 1 1
        ANY items.title IN {'a', 'b'} → one of 0.items as 1: 1.title:string in {'a', 'b'} 2 25 25
        age IN items.n → one of 0.items as 1: 0.age:integer = 1.n:integer 2 17 17
        items.n CONTAINS 1 → one of 0.items as 1: 1.n:integer = 1:integer 2 15 15
        friends CONTAINS boss → one of 0.friends as 1: 0.boss = 1 2 17 17
        ANY {1, 2} == age → 0.age:integer in {1, 2} 1 16 16
        ALL {1, 2} == age → (0.age:integer = 1:integer & 0.age:integer = 2:integer) 1 8 8
        ANY {1, 2} IN items.n → one of 0.items as 1: 1.n:integer in {1, 2} 2 25 25
        ANY {1, 2} IN {2, 3} → true 1 1 1
        ANY {1, level} == 2 → 0.level:integer = 2:integer 1 6 6
        ALL {1, level} == 2 → false 1 1 1
        ANY {1, 2} IN {age, 3} → 0.age:integer in {1, 2} 1 16 16
        ANY {1, 2} IN (items.n UNION {5}) → one of 0.items as 1: 1.n:integer in {1, 2} 2 25 25
        ANY age == 1 → (not 0.age:integer is nil & 0.age:integer = 1:integer) 1 8 8
        ALL age == 1 → (0.age:integer is nil | 0.age:integer = 1:integer) 1 9 9
        ANY boss.name == 'a' → (not 0.boss.name:string is nil & 0.boss.name:string = 'a':string) 1 8 8
        ALL boss.name == nil → (0.boss.name:string is nil | 0.boss.name:string is nil) 1 9 9
        items.@count == 0 → count:[0.items as 1]():integer = 0:integer 2 9 9
        items.@sum.price > 1 → sum:[0.items as 1](1.price:double):double > 1:integer 2 14 14
        items.@avg.price > 1 → average:[0.items as 1](1.price:double):double > 1:integer 2 14 14
        items.@min.price > 1 → min:[0.items as 1](1.price:double):double > 1:integer 2 14 14
        items.@max.title == 'a' → max:[0.items as 1](1.title:string):string = 'a':string 2 14 14
        items.title.@count == 1 → count:[0.items as 1 where not 1.title:string is nil]():integer = 1:integer 2 16 16
        items.@sum.owner.age == 1 → sum:[0.items as 1](1.owner.age:integer):integer = 1:integer 2 14 14
        count(items) == 1 → count:[0.items as 1]():integer = 1:integer 2 9 9
        sum(items.price) == 1 → sum:[0.items as 1](1.price:double):double = 1:integer 2 14 14
        median(items.price) == 1 → median:[0.items as 1](1.price:double):double = 1:integer 2 14 14
        stddev(items.price) == 1 → stddev:[0.items as 1](1.price:double):double = 1:integer 2 14 14
        items[SIZE] == 1 → count:[0.items as 1]():integer = 1:integer 2 9 9
        boss.items.@count == 1 → count:[0.boss.items as 1]():integer = 1:integer 2 9 9
        max({age, level, 3}) == 1 → max:(0.age:integer, 0.level:integer, 3:integer):integer = 1:integer 1 11 11
        min({name, 'a'}) == 'a' → min:(0.name:string, 'a':string):string = 'a':string 1 9 9
        sum({age, score}) == 1 → sum:(0.age:integer, 0.score:double):double = 1:integer 1 11 11
        average({age, level}) == 1 → average:(0.age:integer, 0.level:integer):double = 1:integer 1 11 11
        count({age, nil}) == 1 → count:(0.age:integer, nil:null):integer = 1:integer 1 9 9
        sum({active, active}) == 1 → sum:(0.active:bool, 0.active:bool):integer = 1:integer 1 11 11
        median({age, 1}) == 1 → median:(0.age:integer, 1:integer):double = 1:integer 1 9 9
        SUBQUERY(items, $i, $i.n == 1).@count > 0 → count:[0.items as 1 where 1.n:integer = 1:integer]():integer > 0:integer 2 15 15
        SUBQUERY(items, $i, $i.n == age AND $i.price > 1).@count == 1 → count:[0.items as 1 where (1.n:integer = 0.age:integer & 1.price:double > 1:integer)]():integer = 1:integer 2 17 17
        ANY SUBQUERY(items, $i, $i.n == 1).price > 2 → one of 0.items as 1 where 1.n:integer = 1:integer: 1.price:double > 2:integer 2 15 15
        SUBQUERY(SUBQUERY(items, $i, $i.n == 1), $j, $j.price > 1).@count == 1 → count:[0.items as 1 where (1.n:integer = 1:integer & 1.price:double > 1:integer)]():integer = 1:integer 2 17 17
        SUBQUERY(friends, $f, SUBQUERY($f.items, $i, $i.owner == $f).@count == 0).@count == 1 → count:[0.friends as 1 where count:[1.items as 2 where 2.owner = 1]():integer = 0:integer]():integer = 1:integer 3 26 26 costly
        age + 1 == 2 → add:to:(0.age:integer, 1:integer):integer = 2:integer 1 7 7
        age + 1.5 == 2 → add:to:(0.age:integer, 1.5:double):double = 2:integer 1 7 7
        1 + 2 == age → 0.age:integer = 3:integer 1 6 6
        age - level == 1 → from:subtract:(0.age:integer, 0.level:integer):integer = 1:integer 1 9 9
        age * 2 == 1 → multiply:by:(0.age:integer, 2:integer):integer = 1:integer 1 7 7
        age / 2 == 1 → divide:by:(0.age:integer, 2:integer):integer = 1:integer 1 7 7
        age / 0 == nil → divide:by:(0.age:integer, 0:integer):integer is nil 1 7 7
        modulus:by:(age, 2) == 1 → modulus:by:(0.age:integer, 2:integer):integer = 1:integer 1 9 9
        age ** 2 == 4 → raise:toPower:(0.age:integer, 2:integer):double = 4:integer 1 9 9
        (age & 1) == 1 → bitwiseAnd:with:(0.age:integer, 1:integer):integer = 1:integer 1 9 9
        ~age == 1 → onesComplement:(0.age:integer):integer = 1:integer 1 9 9
        abs(age) == 1 → abs:(0.age:integer):integer = 1:integer 1 9 9
        abs(active) == 1 → abs:(0.active:bool):integer = 1:integer 1 9 9
        abs(score) == 1 → abs:(0.score:double):double = 1:integer 1 9 9
        sqrt(age) == 1 → sqrt:(0.age:integer):double = 1:integer 1 9 9
        floor(wage) == 1 → floor:(0.wage:decimal):decimal = 1:integer 1 9 9
        uppercase(name) == 'A' → uppercase:(0.name:string):string = 'A':string 1 9 9
        length(name) == 1 → length:(0.name:string):integer = 1:integer 1 9 9
        name.length == 1 → length:(0.name:string):integer = 1:integer 1 9 9
        photo.length == 1 → length:(0.photo:data):integer = 1:integer 1 9 9
        items.title.length == 1 → A to-many key is not allowed where one value is needed; use ANY, ALL, SUBQUERY or a collection operator. (entity Person, key path items.title.length)
        length('abc') == age → 0.age:integer = 3:integer 1 6 6
        born + 1 == born → add:to:(0.born:date, 1:integer):date = 0.born:date 1 8 8
        1 + born == born → add:to:(1:integer, 0.born:date):date = 0.born:date 1 9 9
        born - born == 1 → from:subtract:(0.born:date, 0.born:date):double = 1:integer 1 9 9
        born - 1 == born → from:subtract:(0.born:date, 1:integer):date = 0.born:date 1 8 8
        born + nil == born → add:to:(0.born:date, nil:null):date = 0.born:date 1 8 8
        noindex:(age) == 1 → noindex:(0.age:integer):integer = 1:integer 1 9 9
        random() == 1 → random():integer = 1:integer 1 6 6
        randomn(5) == 1 → randomn:(5:integer):integer = 1:integer 1 6 6
        CAST(age, 'NSString') == '1' → castObject:toType:(0.age:integer, 'NSString':string):string = '1':string 1 9 9
        CAST(name, 'NSNumber') == 1 → castObject:toType:(0.name:string, 'NSNumber':string):double = 1:integer 1 9 9
        CAST(name, 'NSDate') == born → castObject:toType:(0.name:string, 'NSDate':string):date = 0.born:date 1 9 9
        CAST(name, 'NSURL') == 'a' → castObject:toType:(0.name:string, 'NSURL':string):uri = 'a':string 1 9 9
        CAST(name, 'NSUUID') == uid → castObject:toType:(0.name:string, 'NSUUID':string):uuid = 0.uid:uuid 1 9 9
        CAST(name, 'NSData') == photo → castObject:toType:(0.name:string, 'NSData':string):data = 0.photo:data 1 9 9
        CAST(boss, 'Manager') == nil → 0.boss<Manager> is nil 1 6 6
        CAST(boss, 'Person') == nil → 0.boss is nil 1 6 6
        CAST(boss, 'Manager').area == 'x' → 0.boss<Manager>.area:string = 'x':string 1 6 6
        ANY CAST(friends, 'Manager').area == 'x' → one of 0.friends as 1: 1<Manager>.area:string = 'x':string 2 15 15
        CAST(SELF, 'Manager').area == 'x' → 0<Manager>.area:string = 'x':string 1 6 6
        CAST(nil, 'Manager') == nil → Unable to parse the format string "CAST(nil, '…') == nil": at position 21 expected CAST(value, type) with one of the types NSDate, NSNumber, NSDecimalNumber, NSString, NSUUID, NSURL, NSData, found '=='.
        {3, 1}[0] == age → 0.age:integer = 3:integer 1 6 6
        {3, 1}[LAST] == age → 0.age:integer = 1:integer 1 6 6
        {3, 1}[SIZE] == age → 0.age:integer = 2:integer 1 6 6
        mode({1, 2, 2})[0] == age → 0.age:integer = 2:integer 1 6 6
        TERNARY(age == 1, 2, 3) == 2 → (0.age:integer = 1:integer ? 2:integer : 3:integer) = 2:integer 1 10 10
        TERNARY(age == 1, level, nil) == 2 → (0.age:integer = 1:integer ? 0.level:integer : nil:null) = 2:integer 1 11 11
        TERNARY(1 == 1, age, level) == 2 → 0.age:integer = 2:integer 1 6 6
        TERNARY(1 == 2, age, level) == 2 → 0.level:integer = 2:integer 1 6 6
        TERNARY(age == 1, boss, SELF) == SELF → (0.age:integer = 1:integer ? 0.boss : 0) = 0 1 11 11
        TERNARY(age == 1, TERNARY(age == 2, 1, 2), 3) == 1 → (0.age:integer = 1:integer ? (0.age:integer = 2:integer ? 1:integer : 2:integer) : 3:integer) = 1:integer 1 15 15
        age == 1 AND level == 2 → (0.age:integer = 1:integer & 0.level:integer = 2:integer) 1 8 8
        age == 1 AND level == 2 AND score == 3 → (0.age:integer = 1:integer & 0.level:integer = 2:integer & 0.score:double = 3:integer) 1 8 8
        age == 1 AND (level == 2 AND score == 3) → (0.age:integer = 1:integer & 0.level:integer = 2:integer & 0.score:double = 3:integer) 1 8 8
        age == 1 OR level == 2 → (0.age:integer = 1:integer | 0.level:integer = 2:integer) 1 9 9
        age == 1 OR (level == 2 OR score == 3) → (0.age:integer = 1:integer | 0.level:integer = 2:integer | 0.score:double = 3:integer) 1 9 9
        age == 1 AND (level == 2 OR score == 3) → (0.age:integer = 1:integer & (0.level:integer = 2:integer | 0.score:double = 3:integer)) 1 9 11
        (age == 1 AND level == 2) OR score == 3 → ((0.age:integer = 1:integer & 0.level:integer = 2:integer) | 0.score:double = 3:integer) 1 10 10
        NOT age == 1 → not 0.age:integer = 1:integer 1 7 7
        NOT (NOT age == 1) → 0.age:integer = 1:integer 1 6 6
        NOT (age == 1 OR level == 2) → not (0.age:integer = 1:integer | 0.level:integer = 2:integer) 1 10 10
        age == 1 AND 1 == 1 → 0.age:integer = 1:integer 1 6 6
        age == 1 AND 1 == 2 → false 1 1 1
        age == 1 OR 1 == 1 → true 1 1 1
        age == 1 OR 1 == 2 → 0.age:integer = 1:integer 1 6 6
        TRUEPREDICATE → true 1 1 1
        FALSEPREDICATE → false 1 1 1
        NOT TRUEPREDICATE → false 1 1 1
        'a' < 'b' → true 1 1 1
        'a' ==[c] 'A' → true 1 1 1
        'ab' LIKE 'a*' → true 1 1 1
        'ab' MATCHES 'a' → false 1 1 1
        nil == nil → true 1 1 1
        1 == nil → false 1 1 1
        name == $name → 0.name:string = 'n':string 1 6 6
        age == $missing.x OR $boss.name == 'a' → 0.age:integer is nil 1 6 6
        boss == $boss → 0.boss = 1.1.7:reference 1 6 6
        $boss == $boss.boss → false 1 1 1
        age == $expression → 0.age:integer = add:to:(0.level:integer, 1:integer):integer 1 9 9
        """#

    static let values = #"""
        name → 'Élan' | 'Élan' string | a number
        age → 42 | 42 integer | a number
        SELF → 1.1.1 | 1.1.1 reference | a number
        boss → 1.1.3 | 1.1.3 reference | a number
        boss.name → 'Ann' | 'Ann' string | a number
        boss.boss.name → nil | nil string | a number
        boss.age + 1 → 61 | 61 integer | a number
        address.street → 'Main' | 'Main' string | a number
        name.length → 4 | 4 integer | a number
        photo.length → 2 | 2 integer | a number
        missing → nil | refused
        items.@count → 3 | 3 integer | a number
        items.@sum.n → 6 | 6 integer | a number
        items.@avg.n → 2.0 | 2.0 double | a number
        items.@min.price → 1.5 | 1.5 double | a number
        items.@max.price → 4.5 | 4.5 double | a number
        items.@max.title → 'nut' | 'nut' string | a number
        items.title.@count → 3 | 3 integer | a number
        boss.items.@count → 0 | 0 integer | a number
        boss.boss.items.@count → 0 | 0 integer | a number
        boss.boss.items.@sum.n → 0 | 0 integer | a number
        boss.boss.items.@max.n → nil | nil integer | a number
        items.@sum.owner.age → 104 | 104 integer | a number
        items[SIZE] → 3 | 3 integer | a number
        items.@unionOfObjects.title → {'nut', 'bolt', 'nut'} | refused
        items.@distinctUnionOfObjects.title → {'nut', 'bolt'} | refused
        friends.@unionOfArrays.items → {} | refused
        friends.name → {'Bob', 'Ann'} | refused
        friends.items.title → {{}, {}} | refused
        count(items) → 3 | 3 integer | a number
        sum(items.n) → 6 | 6 integer | a number
        median(items.n) → 2.0 | 2.0 double | a number
        stddev(items.n) → 0.816496580927726 | 0.816496580927726 double | a number
        mode(items.title) → {'nut'} | refused
        max({age, level, 100}) → 100 | 100 integer | a number
        average({age, level}) → 22.5 | 22.5 double | a number
        SUBQUERY(items, $i, $i.n > 1).@count → 2 | 2 integer | a number
        SUBQUERY(items, $i, $i.owner == SELF).title → {'nut', 'nut'} | refused
        SUBQUERY(items, $i, $i.n > 1).@sum.price → 7.5 | 7.5 double | a number
        age + level → 45 | 45 integer | a number
        age - 2.5 → 39.5 | 39.5 double | a number
        age * level → 126 | 126 integer | a number
        age / 4 → 10 | 10 integer | a number
        age / 0 → nil | nil integer | (divide:by:(0.age:integer, 0:integer):integer is nil & not 0.age:integer is nil)
        modulus:by:(age, 5) → 2 | 2 integer | a number
        level ** 2 → 9.0 | 9.0 double | (raise:toPower:(0.level:integer, 2:integer):double is nil & not 0.level:integer is nil)
        -age → -42 | -42 integer | a number
        ~age → -43 | -43 integer | a number
        age & 8 | 1 ^ 2 → 11 | 11 integer | a number
        1 << 3 >> 1 → 4 | 4 integer | a number
        born + 1 → @1001.0 | @1001.0 date | a number
        born - born → 0.0 | 0.0 double | (from:subtract:(0.born:date, 0.born:date):double is nil & not 0.born:date is nil & not 0.born:date is nil)
        wage * 2 → 6.06 | 6.06 double | a number
        active + 1 → 2 | 2 integer | a number
        name + 1 → nil | refused
        sqrt(age) → 6.48074069840786 | 6.48074069840786 double | (sqrt:(0.age:integer):double is nil & not 0.age:integer is nil)
        sqrt(-1) → nil | nil null | a number
        ceiling(score) → 3.0 | 3.0 double | a number
        abs(-3) → 3 | 3 integer | a number
        uppercase(name) → 'ÉLAN' | 'ÉLAN' string | a number
        canonical(name) → 'elan' | 'elan' string | a number
        length(name) → 4 | 4 integer | a number
        length(photo) → 2 | 2 integer | a number
        uppercase(age) → nil | refused
        lowercase(nil) → nil | nil null | a number
        CAST(age, 'NSString') → '42' | '42' string | a number
        CAST(name, 'NSNumber') → nil | nil double | a number
        CAST(born, 'NSNumber') → 1000.0 | 1000.0 double | a number
        CAST(uid, 'NSString') → 'E6000000-0000-0000-0000-000000000001' | 'E6000000-0000-0000-0000-000000000001' string | a number
        TERNARY(age > 40, name, nick) → 'Élan' | 'Élan' string | a number
        TERNARY(age < 40, name, nick) → 'ab' | 'ab' string | a number
        {1, age, nil} → {1, 42, nil} | refused
        {3, 1}[0] → 3 | 3 integer | a number
        {3, 1}[-1] → nil | nil null | a number
        items.n UNION {9} → {1, 2, 3, 9} | refused
        items.n MINUS {2} → {1, 3} | refused
        items.n INTERSECT {2, 3, 4} → {2, 3} | refused
        noindex:(age) → 42 | 42 integer | a number
        CAST(boss, 'Manager').area → a value of type Toy cannot be cast to Manager | 'north' string | a number
        CAST(SELF, 'Manager') → a value of type Toy cannot be cast to Manager | nil reference | a number
        FUNCTION(name, 'uppercaseString') → 'ÉLAN' | refused
        FUNCTION(name, 'lowercaseString') → 'élan' | refused
        FUNCTION('two words', 'capitalizedString') → 'Two Words' | refused
        FUNCTION(name, 'length') → 4 | refused
        FUNCTION(photo, 'length') → 2 | refused
        FUNCTION(age, 'length') → nil | refused
        FUNCTION(name, 'stringByAppendingString:', 'x') → 'Élanx' | refused
        FUNCTION(name, 'stringByAppendingString:', 1) → nil | refused
        FUNCTION(age, 'description') → '42' | refused
        FUNCTION(score, 'stringValue') → '2.5' | refused
        FUNCTION('2.9x', 'doubleValue') → nil | refused
        FUNCTION('2.9', 'doubleValue') → 2.9 | refused
        FUNCTION(age, 'floatValue') → 42.0 | refused
        FUNCTION('2.9', 'integerValue') → 2 | refused
        FUNCTION('-7', 'intValue') → -7 | refused
        FUNCTION(score, 'longLongValue') → 2 | refused
        FUNCTION(0, 'boolValue') → 0 | refused
        FUNCTION('1', 'boolValue') → 1 | refused
        FUNCTION('x', 'boolValue') → 0 | refused
        FUNCTION(missing, 'uppercaseString') → nil | refused
        FUNCTION(friends, 'count') → 2 | refused
        FUNCTION({3, 1}, 'objectAtIndex:', 1) → 1 | refused
        FUNCTION({3, 1}, 'objectAtIndex:', 1.9) → 1 | refused
        FUNCTION({3, 1}, 'objectAtIndex:', 2) → nil | refused
        FUNCTION({3, 1}, 'objectAtIndex:', nil) → nil | refused
        FUNCTION(boss, 'valueForKey:', 'name') → 'Ann' | 'Ann' string | a number
        FUNCTION(SELF, 'valueForKeyPath:', 'boss.name') → 'Ann' | 'Ann' string | a number
        FUNCTION(SELF, 'objectForKey:', 'age') → 42 | refused
        FUNCTION(SELF, 'valueForKeyPath', 'boss.age') → 60 | refused
        FUNCTION(name, 'nosuch') → there is no function nosuch to call on a string | refused
        """#
}
