extension MessageTableTests {
    static let refused = #"""
        nosuch == 1 → unknownKey: The key path nosuch was not found: there is no property nosuch. (entity Person, key path nosuch)
        boss.nosuch == 1 → unknownKey: The key path boss.nosuch was not found: there is no property nosuch. (entity Person, key path boss.nosuch)
        age.length == 1 → unknownKey: The key path age.length was not found: there is no length under a value. (entity Person, key path age.length)
        name.length.x == 1 → unknownKey: The key path name.length.x was not found: there is no x under a value. (entity Person, key path name.length.x)
        address.nosuch == 'x' → unknownKey: The composite attribute address has no element nosuch. (entity Person, key path address.nosuch)
        secret == 1 → unsupported: The property secret cannot be used by a store: it is transient. (entity Person, key path secret)
        items.secret == 1 → unknownKey: The key path items.secret was not found: there is no property secret. (entity Item, key path items.secret)
        name.@count == 1 → collectionNeeded: @count needs exactly one to-many relationship to its left. (entity Person, key path name.@count)
        items.@median.price == 1 → unsupported: A store cannot evaluate the collection operator @median. (entity Person, key path items.@median.price)
        items.price.@sum == 1 → collectionNeeded: @sum needs exactly one to-many relationship to its left. (entity Person, key path items.price.@sum)
        friends.items.@count == 1 → collectionNeeded: @count needs exactly one to-many relationship to its left. (entity Person, key path friends.items.@count)
        items.@count.x == 1 → unknownKey: Nothing can follow @count in a key path. (entity Person, key path items.@count.x)
        items.@sum.owner.items == 1 → toManyNotAllowed: A to-many key is not allowed behind @sum. (entity Person, key path items.@sum.owner.items)
        items.@sum.title == 1 → incompatibleTypes: The function sum: cannot be taken over values of type string. (entity Person, key path items.@sum.title)
        items.@max.owner == 1 → incompatibleTypes: The function max: cannot be taken over values of type reference. (entity Person, key path items.@max.owner)
        friends.@min.blob == 1 → incompatibleTypes: The function min: cannot be taken over values of type transformable. (entity Person, key path friends.@min.blob)
        friends.@min.address == 1 → incompatibleTypes: The function min: cannot be taken over values of type composite. (entity Person, key path friends.@min.address)
        items.@sum.nosuch == 1 → unknownKey: The key path nosuch was not found: there is no property nosuch. (entity Item, key path nosuch)
        boss.items.title.x == 'a' → unknownKey: The key path boss.items.title.x was not found: there is no x under a value. (entity Person, key path boss.items.title.x)
        name.street == 1 → unknownKey: The key path name.street was not found: there is no street under a value. (entity Person, key path name.street)
        items == 1 → toManyNotAllowed: A to-many key is not allowed where one value is needed; use ANY, ALL, SUBQUERY or a collection operator. (entity Person, key path items)
        items.price > 1 → toManyNotAllowed: A to-many key is not allowed where one value is needed; use ANY, ALL, SUBQUERY or a collection operator. (entity Person, key path items.price)
        items == nil → toManyNotAllowed: A to-many key is not allowed where one value is needed; use ANY, ALL, SUBQUERY or a collection operator. (entity Person, key path items)
        {1} == 1 → toManyNotAllowed: The collection {1} stands where one value is needed. (entity Person)
        age == {1, 2} → toManyNotAllowed: The collection {1, 2} stands where one value is needed. (entity Person)
        (items UNION friends) == 1 → toManyNotAllowed: The collection items UNION friends stands where one value is needed. (entity Person)
        ANY 'x' == 'x' → collectionNeeded: ANY, ALL and NONE need a to-many key on their left side. (entity Person, key path "x")
        ALL lowercase(name) == 'x' → collectionNeeded: ANY, ALL and NONE need a to-many key on their left side. (entity Person, key path lowercase(name))
        age IN 3 → collectionNeeded: IN and CONTAINS need a collection or a string, not 3. (entity Person, key path age)
        age IN boss → collectionNeeded: IN and CONTAINS need a collection or a string, not boss. (entity Person, key path age)
        age CONTAINS 1 → collectionNeeded: IN and CONTAINS need a collection or a string, not age. (entity Person, key path age)
        1 IN (age UNION {2}) → collectionNeeded: IN and CONTAINS need a collection or a string, not age UNION {2}. (entity Person, key path 1)
        ANY items.price IN (age UNION {1}) → collectionNeeded: IN and CONTAINS need a collection or a string, not age UNION {1}. (entity Person, key path items.price)
        items[0] == nil → unsupported: A store cannot take a member of items by its index. (entity Person)
        items[FIRST] == 1 → unsupported: A store cannot take a member of items by its index. (entity Person)
        age[0] == 1 → unsupported: A store cannot take a member of age by its index. (entity Person)
        friends.items[SIZE] == 1 → unsupported: A store cannot take a member of friends.items by its index. (entity Person)
        SUBQUERY(name, $x, $x == 1).@count == 1 → collectionNeeded: SUBQUERY needs a to-many relationship, not name. (entity Person)
        SUBQUERY(items.price, $x, $x > 1).@count == 1 → collectionNeeded: SUBQUERY needs a to-many relationship, not items.price. (entity Person)
        age == 'x' → incompatibleTypes: A value of type integer cannot be compared with one of type string, in age == "x". (entity Person, key path age)
        name > 3 → incompatibleTypes: A value of type string cannot be compared with one of type integer, in name > 3. (entity Person, key path name)
        boss == 'x' → incompatibleTypes: A value of type reference cannot be compared with one of type string, in boss == "x". (entity Person, key path boss)
        boss < boss → incompatibleTypes: There is no order between values of type reference, in boss < boss. (entity Person, key path boss)
        address > nil → incompatibleTypes: There is no order between values of type composite, in address > nil. (entity Person, key path address)
        address == 'x' → unsupported: The composite attribute address can be compared with nil only; name one of its elements. (entity Person, key path address)
        address == address.street → unsupported: The composite attribute address can be compared with nil only; name one of its elements. (entity Person, key path address)
        address IN {'x'} → unsupported: The composite attribute address can be compared with nil only; name one of its elements. (entity Person, key path address)
        length(address) == 1 → unsupported: The composite attribute address can be compared with nil only; name one of its elements. (entity Person, key path address)
        blob == 1 → incompatibleTypes: A value of type transformable cannot be compared with one of type integer, in blob == 1. (entity Person, key path blob)
        blob > nil → incompatibleTypes: There is no order between values of type transformable, in blob > nil. (entity Person, key path blob)
        blob == blob → unsupported: A transformable attribute can be compared with nil only. (entity Person, key path blob)
        blob IN {nil, 1} → incompatibleTypes: A value of type transformable cannot be compared with one of type integer, in blob IN {nil, 1}. (entity Person, key path blob)
        entity < entity → incompatibleTypes: There is no order between values of type entity, in entity < entity. (entity Person, key path entity)
        age LIKE '1' → incompatibleTypes: like needs strings, not a value of type integer. (entity Person, key path age)
        name LIKE 1 → incompatibleTypes: like needs strings, not a value of type integer. (entity Person, key path name)
        name BEGINSWITH age → incompatibleTypes: beginsWith needs strings, not a value of type integer. (entity Person, key path name)
        born == 1 → incompatibleTypes: A value of type date cannot be compared with one of type integer, in born == 1. (entity Person, key path born)
        uid == 'x' → incompatibleTypes: A value of type uuid cannot be compared with one of type string, in uid == "x". (entity Person, key path uid)
        photo == 'x' → incompatibleTypes: A value of type data cannot be compared with one of type string, in photo == "x". (entity Person, key path photo)
        age IN {1, 'x'} → incompatibleTypes: A value of type integer cannot be compared with one of type string, in age IN {1, "x"}. (entity Person, key path age)
        name IN {1, born} → incompatibleTypes: A value of type string cannot be compared with one of type integer, in name IN {1, born}. (entity Person, key path name)
        age BETWEEN {1, 'x'} → incompatibleTypes: A value of type integer cannot be compared with one of type string, in age BETWEEN {1, "x"}. (entity Person, key path age)
        boss BETWEEN {boss, boss} → incompatibleTypes: There is no order between values of type reference, in boss BETWEEN {boss, boss}. (entity Person, key path boss)
        age BETWEEN {1} → invalidConstant: BETWEEN needs a collection of two values. (entity Person, key path age)
        age BETWEEN {1, 2, 3} → invalidConstant: BETWEEN needs a collection of two values. (entity Person, key path age)
        age BETWEEN items.price → invalidConstant: BETWEEN needs a collection of two values. (entity Person, key path age)
        TERNARY(age == 1, 'a', 2) == 1 → incompatibleTypes: The two values of TERNARY are of the types string and integer. (entity Person)
        name MATCHES '(' → invalidConstant: "(" is not a regular expression. (entity Person, key path name)
        'a' MATCHES '[' → invalidConstant: "[" is not a regular expression. (entity Person, key path "a")
        age + name == 1 → incompatibleTypes: The function add:to: takes numbers, not a value of type string. (entity Person)
        born + born == born → incompatibleTypes: The function add:to: takes numbers, not a value of type date. (entity Person)
        1 - born == born → incompatibleTypes: The function from:subtract: takes numbers, not a value of type date. (entity Person)
        born * 2 == 1 → incompatibleTypes: The function multiply:by: takes numbers, not a value of type date. (entity Person)
        name - born == 1 → incompatibleTypes: The function from:subtract: takes numbers, not a value of type string. (entity Person)
        modulus:by:(age, name) == 1 → incompatibleTypes: The function modulus:by: takes numbers, not a value of type string. (entity Person)
        uppercase(age) == 'x' → incompatibleTypes: The function uppercase: takes a string, not a value of type integer. (entity Person)
        length(age) == 1 → incompatibleTypes: The function length: takes a string or data, not a value of type integer. (entity Person)
        canonical(born) == 'x' → incompatibleTypes: The function canonical: takes a string, not a value of type date. (entity Person)
        sqrt(name) == 1 → incompatibleTypes: The function sqrt: takes a number, not a value of type string. (entity Person)
        floor(born) == 1 → incompatibleTypes: The function floor: takes a number, not a value of type date. (entity Person)
        abs('x') == 1 → incompatibleTypes: The function abs: takes a number, not a value of type string. (entity Person)
        (age & name) == 1 → incompatibleTypes: The function bitwiseAnd:with: takes numbers, not a value of type string. (entity Person)
        ~name == 1 → incompatibleTypes: The function onesComplement: takes numbers, not a value of type string. (entity Person)
        randomn(name) == 1 → incompatibleTypes: The function randomn: takes numbers, not a value of type string. (entity Person)
        sum(age) == 1 → collectionNeeded: The function sum: needs a collection here. (entity Person, key path age)
        median(age) == 1 → collectionNeeded: The function median: needs a collection here. (entity Person, key path age)
        sum({age, name}) == 1 → incompatibleTypes: The function sum: cannot be taken over values of type string. (entity Person)
        max({age, name}) == 1 → incompatibleTypes: The function max: cannot compare a value of type integer with one of type string. (entity Person)
        min({boss, age}) == 1 → incompatibleTypes: The function min: cannot be taken over values of type reference. (entity Person)
        mode({age}) == 1 → unsupported: A store cannot evaluate mode:. (entity Person)
        mode(items.price) == 1 → unsupported: A store cannot take mode: of items.price. (entity Person, key path items.price)
        mode(age, 1) == 1 → unsupported: A store cannot evaluate mode:. (entity Person)
        sum(items) == 1 → incompatibleTypes: The function sum: cannot be taken over values of type reference. (entity Person, key path items)
        sum(items.title) == 1 → incompatibleTypes: The function sum: cannot be taken over values of type string. (entity Person, key path items.title)
        max(items.owner) == 1 → incompatibleTypes: The function max: cannot be taken over values of type reference. (entity Person, key path items.owner)
        sum(friends.items.price) == 1 → unsupported: A store cannot take sum: of friends.items.price. (entity Person, key path friends.items.price)
        sum(items.price UNION friends.age) == 1 → unsupported: A store cannot compute with the set items.price UNION friends.age. (entity Person)
        CAST(boss, 'Nobody') == nil → invalidConstant: There is no type and no entity Nobody to cast to. (entity Person)
        CAST(boss, 'Item') == nil → incompatibleTypes: An object of Person is never one of Item. (entity Person)
        CAST(age, 'Person') == nil → incompatibleTypes: Only objects can be cast to the entity Person, not age. (entity Person)
        CAST(items.title, 'Person') == nil → incompatibleTypes: Only objects can be cast to the entity Person, not items.title. (entity Person)
        ANYKEY == 1 → unsupported: ANYKEY cannot be evaluated by a store. (entity Person)
        FUNCTION(name, 'length') == 1 → unsupported: A store cannot call the function length. Fetch without it, and filter the result. (entity Person)
        FUNCTION(name, 'substring:', 1) == 1 → unsupported: A store cannot call the function substring:. Fetch without it, and filter the result. (entity Person)
        name == $x → unboundVariable: There is no value for the variable $x. (entity Person)
        $boss.nosuch == 1 → possible
        $number.x == 1 → unknownKey: an object of type Int has no value for the key "x" (entity Person, key path x)
        $list.x == 1 → unknownKey: an object of type Int has no value for the key "x" (entity Person, key path x)
        name == $plain → unsupported: A store cannot compare with a constant of type Plain. (entity Person)
        name IN $plains → unsupported: A store cannot compare with a member of type Plain of a collection. (entity Person)
        entity == $nobody → invalidConstant: The model has no entity Nobody to compare with. (entity Person)
        boss IN $objects → incompatibleTypes: A value of type reference cannot be compared with one of type integer, in boss IN $objects. (entity Person, key path boss)
        age BETWEEN $pair → invalidConstant: BETWEEN needs an array of two values; which of a set's is the lower bound nobody can tell. (entity Person, key path age)
        """#

    static let refusedCode = #"""
        unknownKey: The key path nosuch was not found: there is no property nosuch. (entity Person, key path nosuch)
        toManyNotAllowed: A to-many key is not allowed where one value is needed; use ANY, ALL, SUBQUERY or a collection operator. (entity Person, key path items.price)
        toManyNotAllowed: A fetch cannot be sorted by what a to-many key leads to. (entity Person, key path items.@count)
        incompatibleTypes: There is no order between values of type transformable. (entity Person, key path blob)
        incompatibleTypes: There is no order between values of type entity. (entity Person, key path entity)
        unsupported: A fetch is sorted by attributes, not by what is computed from them. (entity Person, key path name.length)
        incompatibleTypes: The selector localizedCompare: sorts strings, not values of type integer. (entity Person, key path age)
        unsupported: Unsupported NSSortDescriptor selector: reverse:. (entity Person, key path name)
        unsupported: A store cannot sort by code; give the sort descriptor a key and a selector. (entity Person, key path age)
        unsupported: A block predicate cannot be evaluated by a store. (entity Person)
        unsupported: The predicate is nested more than 1000 levels deep. (entity Person)
        unsupported: The predicate is nested too deep for SQLite, and so for all stores. Take it apart, or fetch in several steps. (entity Person)
        unsupported: A fetch cannot compare with more than 10000 values one by one, 10002 here; use IN with a collection. (entity Person)
        unsupported: A key path may have 60 steps at most, not 122. (entity Person, key path age.x.age.x.age.x.age.x.age.x.age.x.age.x.age.x.age.x.age.x.age.x.age.x.age.x.ag…)
        unsupported: A comparison by a method cannot be evaluated by a store. (entity Person)
        unsupported: A block expression cannot be evaluated by a store. (entity Person)
        unsupported: There is no function cube:. (entity Person)
        unsupported: A comparison of each of 250001 values with each of 2 others is too much for one fetch; 250000 pairs are possible in all of its predicate, and what is computed counts more than once. (entity Person)
        toManyNotAllowed: The collection {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, …581, 582, 583, 584, 585, 586, 587, 588, 589, 590, 591, 592, 593, 594, 595, 596, 597, 598, 599, 600} stands where one value is needed. (entity Person)
        """#

    static let unparsed = #"""
        0: Unable to parse the format string "": at position 0 expected an expression, found the end of the text.
        8: Unable to parse the format string "isActive": at position 8 expected a comparison operator, found the end of the text.
        4: Unable to parse the format string "a ==": at position 4 expected an expression, found the end of the text.
        7: Unable to parse the format string "a == 1 b == 2": at position 7 expected an operator or the end of the text, found 'b'.
        5: Unable to parse the format string "a == '…": at position 5 expected a closing quotation mark, found the end of the text.
        7: Unable to parse the format string "(a == 1": at position 7 expected ')', found the end of the text.
        6: Unable to parse the format string "a == 1)": at position 6 expected an operator or the end of the text, found ')'.
        5: Unable to parse the format string "a ==[x] 1": at position 5 expected option letters: c, d, n or l, found 'x'.
        5: Unable to parse the format string "a ==[] 1": at position 5 expected option letters: c, d, n or l, found ']'.
        7: Unable to parse the format string "a ==[c 1": at position 7 expected ']', found a number.
        5: Unable to parse the format string "a == ? ": at position 5 expected a predicate, found '?'.
        0: Unable to parse the format string "AND a == 1": at position 0 expected an expression, found 'AND'.
        2: Unable to parse the format string "a AND b == 1": at position 2 expected a comparison operator, found 'AND'.
        2: Unable to parse the format string "a OR b == 1": at position 2 expected a comparison operator, found 'OR'.
        6: Unable to parse the format string "a == (b == 1)": at position 6 expected an expression, found a predicate.
        5: Unable to parse the format string "a == …": at position 5 expected a number of base 16 that fits 64 bits, found other digits, or too many.
        5: Unable to parse the format string "a == 0b12": at position 5 expected a number of base 2 that fits 64 bits, found other digits, or too many.
        5: Unable to parse the format string "a == 0o8": at position 5 expected a number of base 8 that fits 64 bits, found other digits, or too many.
        5: Unable to parse the format string "a == 12ab": at position 5 expected a number, found digits with letters behind them.
        6: Unable to parse the format string "nosuch(1) == 2": at position 6 expected a known function before its arguments, found '('.
        7: Unable to parse the format string "nosuch:(1) == 2": at position 7 expected a known function before its arguments, found '('.
        15: Unable to parse the format string "modulus:by:(1) == 2": at position 15 expected other arguments: the function modulus:by: takes 2 arguments, not 1, found '=='.
        11: Unable to parse the format string "sqrt(1, 2) == 1": at position 11 expected other arguments: the function sqrt: takes 1 argument, not 2, found '=='.
        7: Unable to parse the format string "now(1) == 1": at position 7 expected other arguments: the function now takes 0 arguments, not 1, found '=='.
        6: Unable to parse the format string "sum() == 1": at position 6 expected other arguments: the function sum: takes 1 argument, not 0, found '=='.
        5: Unable to parse the format string "a == $": at position 5 expected a name after $, found the end of the text.
        5: Unable to parse the format string "a == #": at position 5 expected a name after #, found the end of the text.
        5: Unable to parse the format string "a == %y": at position 5 expected a placeholder such as %@, %K, %d or %f, found % before 'y'.
        5: Unable to parse the format string "a == %": at position 5 expected a placeholder such as %@, %K, %d or %f, found % before the end of the text.
        5: Unable to parse the format string "a == %l": at position 5 expected a placeholder such as %@, %K, %d or %f, found % before 'l'.
        5: Unable to parse the format string "ANY a": at position 5 expected a comparison operator, found the end of the text.
        7: Unable to parse the format string "ALL (a)": at position 7 expected a comparison operator, found the end of the text.
        4: Unable to parse the format string "NONE": at position 4 expected an expression, found the end of the text.
        12: Unable to parse the format string "SUBQUERY(a, x, b == 1) == 1": at position 12 expected a variable, found 'x'.
        14: Unable to parse the format string "SUBQUERY(a, $x) == 1": at position 14 expected ',', found ')'.
        19: Unable to parse the format string "SUBQUERY(a, $x, b) == 1": at position 19 expected a comparison operator, found '=='.
        9: Unable to parse the format string "SUBQUERY a == 1 b": at position 9 expected a comparison operator, found 'a'.
        15: Unable to parse the format string "CAST(1, '…') == 1": at position 15 expected CAST(value, type) with one of the types NSDate, NSNumber, NSDecimalNumber, NSString, NSUUID, NSURL, NSData, found '=='.
        8: Unable to parse the format string "CAST(1) == 1": at position 8 expected CAST(value, type), found '=='.
        11: Unable to parse the format string "CAST(a, b) == 1": at position 11 expected CAST(value, type), found '=='.
        17: Unable to parse the format string "TERNARY(a, 1, 2) == 1": at position 17 expected a comparison operator, found '=='.
        17: Unable to parse the format string "TERNARY(a == 1, 1) == 1": at position 17 expected ',', found ')'.
        12: Unable to parse the format string "FUNCTION(a) == 1": at position 12 expected FUNCTION(target, "selector", arguments…), found '=='.
        15: Unable to parse the format string "FUNCTION(a, b) == 1": at position 15 expected FUNCTION(target, "selector", arguments…), found '=='.
        12: Unable to parse the format string "FETCH(a, b) == 1": at position 12 expected FETCH(request, context, YES or NO), found '=='.
        15: Unable to parse the format string "FETCH(a, b, c) == 1": at position 15 expected FETCH(request, context, YES or NO), found '=='.
        2: Unable to parse the format string "a := 1": at position 2 expected a predicate, found ':'.
        2: Unable to parse the format string "a..b == 1": at position 2 expected a property name, found '.'.
        2: Unable to parse the format string "a.1 == 1": at position 2 expected a property name, found a number.
        2: Unable to parse the format string "a.'…' == 1": at position 2 expected a property name, found a string.
        10: Unable to parse the format string "a == {1, 2": at position 10 expected '}', found the end of the text.
        8: Unable to parse the format string "a == {1,}": at position 8 expected an expression, found '}'.
        3: Unable to parse the format string "a[ == 1": at position 3 expected an expression, found '=='.
        4: Unable to parse the format string "a[0 == 1": at position 4 expected ']', found '=='.
        4: Unable to parse the format string "a[b == 1] == 1": at position 4 expected ']', found '=='.
        6: Unable to parse the format string "a == '…'": at position 6 expected 4 hexadecimal digits, found something else.
        6: Unable to parse the format string "a == '…'": at position 6 expected 2 hexadecimal digits, found something else.
        6: Unable to parse the format string "a == '…'": at position 6 expected a Unicode code point, found half of a surrogate pair.
        6: Unable to parse the format string "a == '…'": at position 6 expected the second half of a surrogate pair, found another code point.
        6: Unable to parse the format string "a == '…'": at position 6 expected a Unicode code point, found half of a surrogate pair.
        3: Unable to parse the format string "NOT": at position 3 expected an expression, found the end of the text.
        1: Unable to parse the format string "!": at position 1 expected an expression, found the end of the text.
        2: Unable to parse the format string "a.%K == 1": at position 2 expected an argument for the placeholder, found no more than 0 arguments.
        6: Unable to parse the format string "a < b < c": at position 6 expected an operator or the end of the text, found '<'.
        5: Unable to parse the format string "a < <nil>": at position 5 expected an expression, found 'nil'.
        10: Unable to parse the format string "a == <null": at position 10 expected '>', found the end of the text.
        6: Unable to parse the format string "a == ~": at position 6 expected an expression, found the end of the text.
        6: Unable to parse the format string "a == -": at position 6 expected an expression, found the end of the text.
        2: Unable to parse the format string "@ == 1": at position 2 expected a property name, found '=='.
        a == 1.e5x → parses as a == 1.e5x
        9: Unable to parse the format string "a BETWEEN": at position 9 expected an expression, found the end of the text.
        10: Unable to parse the format string "a ENDSWITH": at position 10 expected an expression, found the end of the text.
        0: Unable to parse the format string "BETWEEN == 1": at position 0 expected an expression, found 'BETWEEN'.
        4: Unable to parse the format string "a & == 1": at position 4 expected an expression, found '=='.
        8: Unable to parse the format string "a UNION == b": at position 8 expected an expression, found '=='.
        18: Unable to parse the format string "näme == '…' schöner == 1": at position 18 expected an operator or the end of the text, found 'schöner'.
        36: Unable to parse the format string "… == 2 OR c == '…' d)": at position 36 expected ')', found 'd'.
        x == 1e999999 → parses as x == CAST("inf", "NSNumber")
        5: Unable to parse the format string "a == …": at position 5 expected a number, found digits with letters behind them.
        0: Unable to parse the format string "%K == 1": at position 0 expected a key path as a string for the placeholder, found a value of type Int.
        0: Unable to parse the format string "%K == 1": at position 0 expected a key path as a string for the placeholder, found nil.
        0: Unable to parse the format string "%K == 1": at position 0 expected a key path, found an empty text.
        0: Unable to parse the format string "%K == 1": at position 0 expected a key path, found a text with an empty name.
        0: Unable to parse the format string "%K == 1": at position 0 expected an argument for the placeholder, found no more than 0 arguments.
        17: Unable to parse the format string "a == %@ AND b == %@": at position 17 expected an argument for the placeholder, found no more than 1 argument.
        6: Unable to parse the format string "a == 1": at position 6 expected a placeholder for each argument, found 1 more argument than placeholders.
        6: Unable to parse the format string "a == 1": at position 6 expected a placeholder for each argument, found 2 more arguments than placeholders.
        5: Unable to parse the format string "a == %d": at position 5 expected an integer for the placeholder, found a value of type String.
        5: Unable to parse the format string "a == %d": at position 5 expected an integer for the placeholder, found nil.
        5: Unable to parse the format string "a == %d": at position 5 expected an integer for the placeholder, found a value of type Double.
        5: Unable to parse the format string "a == %f": at position 5 expected a number for the placeholder, found a value of type String.
        5: Unable to parse the format string "a == %s": at position 5 expected a string for the placeholder, found a value of type Int.
        5: Unable to parse the format string "a == %f": at position 5 expected a number for the placeholder, found a value of type Date.
        5: Unable to parse the format string "a == %d": at position 5 expected an integer for the placeholder, found a value of type Array<Int>.
        """#

    static let placeholders = #"""
        %@ → 3 k
        %@ → 0 nil
        %@ → 0 <null>
        %@ → 0 {1, 2}
        %K → 1 SELF
        %K → 1 SELF
        %K → 3 a.b
        a.%K → 3 a.#self
        a.%K.c → 3 a.b.x.c
        %d → 0 3
        %d → 0 -3
        %d → 0 1
        %i → 0 1.8446744073709552e+19
        %u → 0 1e+300
        %ld → 0 3
        %lld → 0 4
        %lu → 0 5
        %llu → 0 6
        %qd → 0 7
        %x → 0 8
        %X → 0 9
        %o → 0 10
        %hd → 0 11
        %hhd → 0 12
        %zd → 0 13
        %f → 0 2.0
        %lf → 0 0.1
        %g → 0 1.5
        %e → 0 1e-07
        %a → 0 1.0
        %f → 0 CAST("nan", "NSNumber")
        %f → 0 CAST("-inf", "NSNumber")
        %s → 0 "t"
        %S → 0 "t"
        %c → Unable to parse the format string "%c": at position 0 expected an integer for the placeholder, found a value of type String.
        %p → Unable to parse the format string "%p": at position 0 expected a placeholder such as %@, %K, %d or %f, found % before 'p'.
        %% → 0 "%"
        %@ + %d * %f → 4 1 + 2 * 3.0
        %C → 0 65
        %D → 0 1
        %U → 0 1
        """#

    static let unanswered = #"""
        age > 'x' → there is no order between a number and a string
        ANY 'x' == 1 → ANY, ALL and NONE need a collection on their left side
        ALL 3 == 1 → ANY, ALL and NONE need a collection on their left side
        age LIKE '4*' → like needs a string on both sides, not a number and a string
        name BEGINSWITH 4 → beginsWith needs a string on both sides, not a string and a number
        ascii MATCHES '(' → "(" is not a regular expression
        age BETWEEN {1} → BETWEEN needs an array of two values on its right side
        age BETWEEN {1, 'x'} → there is no order between a number and a string
        age BETWEEN 3 → BETWEEN needs an array of two values on its right side
        set BETWEEN {1, 2} → between cannot compare a value of type Set<Int>
        tags < 1 → lessThan cannot compare a value of type Array<String>
        1 > owner → greaterThan cannot compare a value of type Dictionary<String, String>
        $unbound == 1 → there is no value for the variable $unbound
        name.nosuch.deeper == 1 → an object of type String has no value for the key "nosuch"
        age.nosuch == 1 → an object of type Int has no value for the key "nosuch"
        FUNCTION(age, 'explode') == 1 → there is no function explode to call on a number
        FUNCTION(plain, 'explode') == 1 → there is no function explode to call on a value of type Plain
        FUNCTION(name, 'valueForKey:', 3) == 1 → the arguments of valueForKey: are not what it takes
        FUNCTION(name, 'objectForKey:') == 1 → the arguments of objectForKey: are not what it takes
        tags.@nosuch == 1 → there is no collection operator @nosuch
        age.@count == 1 → @count needs a collection to its left
        name.@sum.x == 1 → @sum needs a collection to its left
        ANYKEY + 1 == 1 → ANYKEY has a meaning on the left side of a comparison only
        name UNION tags == 1 → name is no collection
        tags MINUS name == 1 → name is no collection
        SUBQUERY(name, $x, $x == 1) == 1 → name is no collection
        age[0] == 1 → only a collection can be indexed
        plain[LAST] == 1 → only a collection can be indexed
        name IN 3 → contains needs a string on both sides, not a number and a string
        3 IN age → contains needs a string on both sides, not a number and a number
        age CONTAINS 4 → contains needs a string on both sides, not a number and a number
        CAST(age, 'Person') == nil → a value of type Int cannot be cast to Person
        plain.nosuch == 1 → an object of type Plain has no value for the key "nosuch"
        tags.nosuch == 1 → an object of type String has no value for the key "nosuch"
        tags == plain AND plain < 1 → false
        {1, 2} < 3 → lessThan cannot compare a value of type Array<Any>
        there is no method spell: to compare with
        there is no function cube:
        the key path leads through too many collections
        """#
}
