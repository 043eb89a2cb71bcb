import Expectations
import StrataPredicates
import Testing

/// Compounds made by the initialisers of Foundation's class, which the framework cannot replace.
@Suite("Compound predicates of Foundation")
struct FoundationCompoundTests {
    private let first = NSPredicate(format: "a == 1")
    private let second = NSPredicate(format: "b == 2")

    private var made: [(compound: NSCompoundPredicate, text: String)] {
        [
            (NSCompoundPredicate(andPredicateWithSubpredicates: [first, second]), "a == 1 AND b == 2"),
            (NSCompoundPredicate(orPredicateWithSubpredicates: [first, second]), "a == 1 OR b == 2"),
            (NSCompoundPredicate(notPredicateWithSubpredicate: first), "NOT a == 1"),
            (NSCompoundPredicate(type: .and, subpredicates: []), "TRUEPREDICATE"),
        ]
    }

    @Test func `their text in the format language is right, and reads back to the same`() throws {
        for (compound, text) in made {
            expectEqual(compound.formatText, text)
            expectEqual(NSPredicate(format: text).formatText, text)
            expect(predicatesAreEqual(compound, NSPredicate(format: text)))
        }
    }

    @Test func `a compound made by a format has text, equality and hash`() throws {
        let (one, other) = (NSPredicate(format: "a == 1 AND b == 2"), NSPredicate(format: "(a == 1) AND b == 2"))

        expect(one == other && one.hash == other.hash && one != NSPredicate(format: "a == 1 OR b == 2"))
        expectEqual(one.description, "a == 1 AND b == 2")
        expectEqual((one as? NSCompoundPredicate)?.subpredicates.count, 2)
    }
}
