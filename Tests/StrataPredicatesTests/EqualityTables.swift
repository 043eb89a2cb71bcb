extension EqualityTableTests {
    static let shapes = #"""
        shapes  a == ?  a != ?  a < ?  a <= ?  a > ?  a >= ?  a == ?  b == ?  ANY a == ?  ALL a == ?  a ==[c] ?
        shapes  a ==[d] ?  a ==[cd] ?  a ==[n] ?  a ==[l] ?  a LIKE ?  a MATCHES ?  a BEGINSWITH ?  a ENDSWITH ?
        shapes  a CONTAINS ?  a IN ?  a BETWEEN ?  TRUEPREDICATE  FALSEPREDICATE  NOT a == ?  NOT NOT a == ?
        shapes  a == ? AND b == ?  a == ? OR b == ?  b == ? AND a == ?  a == ? AND b == ? AND c == ?
        shapes  a == ? AND b == ?  a == ? AND (b == ? OR c == ?)  NOT (a == ? AND b == ?)  NOT (a == ? OR b == ?)
        others  a == $x AND b IN ?  a == ?  SUBQUERY(a, $x, $x.b == ?).@count > ?  a BETWEEN ?
        """#

    static let visits = #"""
        >  <a + 1 == sqrt(b) AND NOT c IN {1, d}>  <a + 1 == sqrt(b)>  a + 1  a  1  op 4  sqrt(b)  b
        >  <NOT c IN {1, d}>  <c IN {1, d}>  c  op 10  {1, d}  1  d
        >  <SUBQUERY(a, $x, $x.y == 1).@count > TERNARY(b == 2, c, 3)>  SUBQUERY(a, $x, $x.y == 1).@count
        >  SUBQUERY(a, $x, $x.y == 1)  a  <$x.y == 1>  $x.y  $x  "y"  op 4  1  "@count"  op 2  TERNARY(b == 2, c, 3)
        >  <b == 2>  b  op 4  2  c  3
        >  <ANY a UNION b == FUNCTION(c, "x", d)>  a UNION b  a  b  op 4  FUNCTION(c, "x", d)  c  d
        """#

    static let substituted = #"""
        5 == 1
        nil == 1
        {1, 2} == 1
        a == 5
        a == nil
        a == {1, 2}
        ANY 5 == 1
        ANY nil == 1
        ANY {1, 2} == 1
        ALL a ==[cd] 5
        ALL a ==[cd] nil
        ALL a ==[cd] {1, 2}
        a + 5 == 1
        a + nil == 1
        a + {1, 2} == 1
        {5, 1} == a
        {nil, 1} == a
        {{1, 2}, 1} == a
        FUNCTION(5, "x", 5) == 1
        FUNCTION(nil, "x", nil) == 1
        FUNCTION({1, 2}, "x", {1, 2}) == 1
        5.name == 1
        nil.name == 1
        {1, 2}.name == 1
        5 UNION a == b
        nil UNION a == b
        {1, 2} UNION a == b
        a UNION 5 == b
        a UNION nil == b
        a UNION {1, 2} == b
        SUBQUERY(5, $x, $x == 5).@count == 1
        SUBQUERY(nil, $x, $x == nil).@count == 1
        SUBQUERY({1, 2}, $x, $x == {1, 2}).@count == 1
        SUBQUERY(a, $v, $v == 1).@count == 5
        SUBQUERY(a, $v, $v == 1).@count == nil
        SUBQUERY(a, $v, $v == 1).@count == {1, 2}
        TERNARY(5 == 1, 5, a) == 1
        TERNARY(nil == 1, nil, a) == 1
        TERNARY({1, 2} == 1, {1, 2}, a) == 1
        TERNARY(a == 1, a, 5) == 1
        TERNARY(a == 1, a, nil) == 1
        TERNARY(a == 1, a, {1, 2}) == 1
        NOT (5 == 1 OR a == 5)
        NOT (nil == 1 OR a == nil)
        NOT ({1, 2} == 1 OR a == {1, 2})
        a BETWEEN {5, 5}
        a BETWEEN {nil, nil}
        a BETWEEN {{1, 2}, {1, 2}}
        a[5] == 1
        a[nil] == 1
        a[{1, 2}] == 1
        """#
}
