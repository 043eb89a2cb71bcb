import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives

// Classes with faults that only show when the model is made.

enum Faulty {
    @ManagedObject
    class Lonely: NSManagedObject {
        @Managed var other: Alone?
    }

    @ManagedObject
    class Alone: NSManagedObject {}

    @ManagedObject
    class Unlisted: NSManagedObject {
        @Managed(.noInverse) var other: Alone?
    }

    @ManagedObject(.name("Alone"))
    class Twin: NSManagedObject {}

    class Plain: NSManagedObject {}

    @ManagedObject
    class WrongInverse: NSManagedObject {
        @Managed(.inverse("nothing")) var other: Alone?
    }

    struct Odd {}

    @ManagedObject
    class Mystery: NSManagedObject {
        @Managed var odd: Odd?
    }

    @ManagedObject
    class Contradiction: NSManagedObject {
        @Managed(.type(.string)) var count: Int
    }

    @ManagedObject
    class TooLarge: NSManagedObject {
        @Managed(.type(.integer16), .default(70_000)) var count: Int
    }

    @ManagedObject
    class Misfit: NSManagedObject {
        @Managed(.length(1...2)) var other: Set<Alone>
    }

    @ManagedObject
    class BadDerivation: NSManagedObject {
        @Managed(.derived(from: "nothing.@count")) var count: Int
    }

    @ManagedObject
    class BadPattern: NSManagedObject {
        @Managed(.matches("[")) var text: String
    }

    @ManagedObject
    class Both: NSManagedObject {
        @Managed(.inverse("one")) var many: Set<Ends>
        @Managed(.noInverse) var other: Ends?
    }

    @ManagedObject
    class Ends: NSManagedObject {
        @Managed(.inverse("other")) var one: Both?
    }

    @ManagedObject(.unique("missing"))
    class BadConstraint: Alone {}
}

@Suite("Faults in classes of models")
struct ClassModelFaultTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let types: @Sendable () -> [NSManagedObject.Type]
        let place: String
        let reason: String
        var testDescription: String { place }

        init(_ types: @autoclosure @escaping @Sendable () -> [NSManagedObject.Type], _ place: String, _ reason: String)
        {
            self.types = types
            self.place = place
            self.reason = reason
        }
    }

    @Test(
        "a fault is an error that names class and property",
        arguments: [
            Case([Faulty.Lonely.self, Faulty.Alone.self], "Faulty.Lonely.other", "has no inverse"),
            Case([Faulty.Unlisted.self], "Faulty.Unlisted.other", "not among the classes"),
            Case([Faulty.Alone.self, Faulty.Twin.self], "Faulty.Twin", "has too"),
            Case([Faulty.Plain.self], "Faulty.Plain", "not marked @ManagedObject"),
            Case(
                [Faulty.WrongInverse.self, Faulty.Alone.self],
                "Faulty.WrongInverse.other",
                "is not a relationship of"
            ),
            Case([Faulty.Mystery.self], "Faulty.Mystery.odd", "that of no attribute"),
            Case([Faulty.Contradiction.self], "Faulty.Contradiction.count", "cannot be declared as"),
            Case([Faulty.TooLarge.self], "Faulty.TooLarge.count", "does not fit"),
            Case([Faulty.Misfit.self, Faulty.Alone.self], "Faulty.Misfit.other", ".length does not fit"),
            Case([Faulty.BadDerivation.self], "Faulty.BadDerivation.count", "does not exist"),
            Case([Faulty.BadPattern.self], "Faulty.BadPattern.text", "no regular expression"),
            Case([Faulty.Both.self, Faulty.Ends.self], "Faulty", "inverse"),
            Case([Faulty.BadConstraint.self], "Faulty.BadConstraint.missing", "no such persistent"),
        ]
    )
    func faults(_ fault: Case) {
        do {
            _ = try NSManagedObjectModel(for: fault.types())
            Issue.record("no error")
        } catch {
            expectEqual((error as? CocoaError)?.code, .coreData)
            expect(
                error.localizedDescription.contains("ModelClassesTests.\(fault.place)"),
                "\(error.localizedDescription)"
            )
            expect(error.localizedDescription.contains(fault.reason), "\(error.localizedDescription)")
        }
    }
}
