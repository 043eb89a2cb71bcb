import Expectations
import StrataPredicates
import Testing

@Suite("Initialisers that return subclasses")
struct FactoryTests {
    @Test func `a format that is one comparison gives a comparison predicate`() throws {
        let predicate = NSPredicate(format: "name ==[cd] %@", "x")

        let comparison = try require(predicate as? NSComparisonPredicate)
        expectEqual(comparison.leftExpression.keyPath, "name")
        expectEqual(comparison.rightExpression.constantValue as? String, "x")
        expectEqual(comparison.predicateOperatorType, .equalTo)
        expectEqual(comparison.options, [.caseInsensitive, .diacriticInsensitive])
        expectEqual(comparison.comparisonPredicateModifier, .direct)
    }

    @Test func `a comparison equals no constant and no block, whichever stands on the left`() {
        let (left, right) = (NSExpression(forKeyPath: "name"), NSExpression(forConstantValue: "x"))
        let comparisons = [
            NSComparisonPredicate(leftExpression: left, rightExpression: right, modifier: .direct, type: .equalTo),
            NSComparisonPredicate(leftExpression: left, rightExpression: right, customSelector: "hasPrefix:"),
        ]
        let others = [NSPredicate(value: false), NSPredicate(value: true), NSPredicate(block: { _, _ in false })]
        for comparison in comparisons {
            for other in others {
                expect(other != comparison, "\(comparison)")
                expect(comparison != other, "\(comparison)")
            }
            expectEqual(Set(others + [comparison]).count, 4)
            expectEqual(comparison, comparison.copy() as? NSComparisonPredicate)
        }
        expect(comparisons[0] != comparisons[1])
    }

    @Test func `a format with AND gives a flat compound predicate`() throws {
        let predicate = NSPredicate(format: "a == 1 AND b == 2 && c == 3")

        let compound = try require(predicate as? NSCompoundPredicate)
        expectEqual(compound.compoundPredicateType, .and)
        expectEqual(compound.subpredicates.count, 3)
    }

    @Test func `arguments may be of any type, optional, or in an array`() {
        let missing: String? = nil

        expect(
            NSPredicate(format: "a == %@ AND b == %@", missing, Date(timeIntervalSinceReferenceDate: 1)).formatText
                == "a == nil AND b == CAST(1.000000, \"NSDate\")"
        )
        expect(
            NSPredicate(format: "a IN %@ AND b == %d", argumentArray: [[1, 2], 3]).formatText
                == "a IN {1, 2} AND b == 3"
        )
    }

    @Test func `text from outside that does not parse throws`() {
        expectThrows(PredicateFormatError.self) { try NSPredicate(validating: "name ==") }
        expectThrows(PredicateFormatError.self) { try NSPredicate(validating: "a == %@") }
        expectThrows(PredicateFormatError.self) { try NSPredicate(validating: "a == 1", arguments: [1]) }
    }

    @Test func `an expression parses and evaluates`() throws {
        expectEqual(NSExpression(format: "2 + 3 * 4").expressionValue(with: nil, context: nil) as? Int, 14)
        expectEqual(NSExpression(format: "2 + 3 * 4").expressionValue(with: nil, context: nil) as? Double, 14)
        expectThrows(PredicateFormatError.self) { try NSExpression(validating: "2 +") }
    }

    @Test func `sort descriptors know their key and selector, and sort`() {
        let byName = NSSortDescriptor(key: "name", ascending: false)
        let people = [["name": "a"], ["name": "c"], ["name": "b"]] as NSArray

        expectEqual(byName.key, "name")
        expectEqual(byName.selector, .compare)
        expect(!byName.ascending)
        expect(
            (people.sortedArray(using: [byName]) as? [[String: String]])?.compactMap { $0["name"] } == ["c", "b", "a"]
        )
        expectEqual((byName.reversedSortDescriptor as? NSSortDescriptor)?.ascending, true)
        expectEqual(byName, NSSortDescriptor(key: "name", ascending: false))
        expect(byName != NSSortDescriptor(key: "name", ascending: false, selector: .localizedCompare))
    }

    @Test func `sort selectors compare as their names say`() {
        func sorted(_ values: [String], _ selector: Selector) -> [String]? {
            (values as NSArray).sortedArray(using: [NSSortDescriptor(key: "self", ascending: true, selector: selector)])
                as? [String]
        }

        expectEqual(sorted(["b", "a", "B", "A"], "compare:"), ["A", "B", "a", "b"])
        expectEqual(sorted(["b", "A"], "caseInsensitiveCompare:"), ["A", "b"])
        expectEqual(sorted(["file10", "file9"], "localizedStandardCompare:"), ["file9", "file10"])
        expectEqual(sorted(["f", "é"], "localizedCompare:"), ["é", "f"])
    }

    @Test func `a sort descriptor with a comparator uses it in both directions`() {
        let byLength = NSSortDescriptor(key: nil, ascending: false) { lhs, rhs in
            let (left, right) = ((lhs as? String)?.count ?? 0, (rhs as? String)?.count ?? 0)
            return left < right ? .orderedAscending : (left == right ? .orderedSame : .orderedDescending)
        }

        expectEqual((["aa", "b", "ccc"] as NSArray).sortedArray(using: [byLength]) as? [String], ["ccc", "aa", "b"])
        expectEqual(byLength.selector, nil)
    }
}
