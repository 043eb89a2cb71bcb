import CoreData

/// Compares the results of a SQLite store and of a store in memory with the same rows, also for rewritten predicates.
struct PredicatePair {
    private let run: Run
    private let stored: NSManagedObjectContext
    private let remembered: NSManagedObjectContext

    init(_ run: Run, _ stored: NSManagedObjectContext, _ remembered: NSManagedObjectContext) {
        (self.run, self.stored, self.remembered) = (run, stored, remembered)
    }

    /// Makes a predicate, and compares the results.
    func compare(_ number: Int, _ stream: inout SeededStream) throws {
        var text = PredicateText.condition(3, &stream)
        let isMutated = stream.chance(0.4)
        if isMutated { text = Hostile.mutated(text, &stream) }
        try compare(number, text, mayBeRefused: isMutated, &stream)
    }

    /// Compares the results of a predicate.
    func compare(_ number: Int, _ text: String, mayBeRefused: Bool, _ stream: inout SeededStream) throws {
        let predicate: NSPredicate
        do {
            predicate = try NSPredicate(validating: text, arguments: [])
        } catch {
            if !mayBeRefused { run.find("input \(number): “\(text)” was refused: \(describe(error))") }
            return run.count("predicates-refused")
        }
        try compare(number, predicate, text, &stream)
    }

    /// Makes a comparison with an argument of any type, and compares the results.
    func compareArgument(_ number: Int, _ stream: inout SeededStream) throws {
        let key = stream.pick([
            "serial", "first", "label", "parent", "parent.label", "children", "marks.serial", "SELF",
        ])
        let comparison = stream.pick([
            "==", "!=", "<", ">=", "IN", "CONTAINS", "BEGINSWITH", "LIKE", "BETWEEN", "MATCHES",
        ])
        let arguments: [Any?] = [
            3, -7.5, Double.nan, Double.infinity, UInt64.max, true, "a", "[a-", "", Date(timeIntervalSince1970: 5),
            Data([0, 255]), [1, 2, 3], ["a", nil] as [String?], [] as [Int], NSNull(), nil, UUID(),
            Decimal(string: "1e90"),
            URL(string: "x-coredata://a/Node/p1"), ["k": 1], Set([1, 2]), NSSet(array: ["a", 2]), Character("x"),
            (1...3),
        ]
        let argument = stream.pick(arguments)
        let text = "\(key) \(comparison) %@"
        let described = "\(text) with \(argument.map { "\($0) of \(type(of: $0))" } ?? "nil")"
        let predicate: NSPredicate
        do {
            predicate = try NSPredicate(validating: text, arguments: [argument])
        } catch { return run.count("predicates-refused") }
        try compare(number, predicate, described, &stream)
    }

    /// Sorts the rows of both stores by a key that may not exist, and compares the orders.
    func compareOrder(_ number: Int, _ stream: inout SeededStream) {
        var key = stream.pick([
            "first", "label", "parent.first", "parent.parent.label", "children.@count", "marks", "second",
        ])
        if stream.chance(0.5) { key = Hostile.mutated(key, &stream) }
        compareOrder(number, key, &stream)
    }

    /// Sorts the rows of both stores by a key, and compares the orders.
    func compareOrder(_ number: Int, _ key: String, _ stream: inout SeededStream) {
        let request = NSFetchRequest<Node>(entityName: "Node")
        request.sortDescriptors = [
            NSSortDescriptor(key: key, ascending: stream.chance(0.5)), NSSortDescriptor(key: "serial", ascending: true),
        ]
        request.fetchLimit = stream.below(50) - 5
        request.fetchOffset = stream.below(10) - 2
        let answers = [stored, remembered].map { context in
            context.performAndWait { () -> [Int64]? in
                do { return try context.fetch(request).map(\.serial) } catch is CocoaError { return nil } catch {
                    run.find("input \(number): an order by “\(key)” gave \(describe(error))")
                    return nil
                }
            }
        }
        run.count(answers[0] == nil ? "orders-refused" : "orders-answered")
        if answers[0] != answers[1] {
            run.find("input \(number): stores disagree about the order by “\(key)”: \(answers.map { $0 ?? [-1] })")
        }
    }

    /// Compares the results of a predicate, and of others that mean the same.
    private func compare(
        _ number: Int,
        _ predicate: NSPredicate,
        _ text: String,
        _ stream: inout SeededStream
    ) throws {
        guard let answer = answer(predicate, stored, number, text) else {
            // If one store refuses a predicate, then the other one must refuse it as well.
            if self.answer(predicate, remembered, number, text) != nil {
                run.find("input \(number): SQLite alone refuses “\(text)”")
            }
            return run.count("fetches-refused")
        }
        run.count("predicates-answered")
        var other = self.answer(predicate, remembered, number, text)
        if run.isSabotaged("wrong-answer"), number % 50 == 10 { other = [-1] }
        if other != answer {
            run.find("input \(number): stores disagree about “\(text)”: \(answer), in memory \(other ?? [])")
        }
        let cut = NSPredicate(format: "serial < %@", stream.below(36))
        let not = { NSCompoundPredicate(notPredicateWithSubpredicate: $0) as NSPredicate }
        let halves = [cut, not(cut)].map { NSCompoundPredicate(andPredicateWithSubpredicates: [predicate, $0]) }
        let rewrites: [(String, NSPredicate)] = [
            ("NOT NOT", not(not(predicate))),
            (
                "OR FALSE",
                NSCompoundPredicate(orPredicateWithSubpredicates: [predicate, NSPredicate(value: false)])
            ),
            ("cut", NSCompoundPredicate(orPredicateWithSubpredicates: halves)),
        ]
        for (name, rewrite) in rewrites {
            let again = self.answer(rewrite, stored, number, text)
            if again != answer {
                run.find("input \(number): “\(text)” and its rewrite \(name) disagree: \(answer), \(again ?? [])")
            }
        }
    }

    /// The serial numbers of the nodes that match; `nil` if the fetch was refused.
    private func answer(
        _ predicate: NSPredicate,
        _ context: NSManagedObjectContext,
        _ number: Int,
        _ text: String
    ) -> [Int64]? {
        let request = NSFetchRequest<Node>(entityName: "Node")
        request.predicate = predicate
        return context.performAndWait {
            do {
                return try context.fetch(request).map(\.serial).sorted()
            } catch is CocoaError {
                return nil
            } catch {
                run.find("input \(number): “\(text)” gave \(describe(error))")
                return nil
            }
        }
    }
}

/// The text of a predicate over nodes, made by a grammar.
enum PredicateText {
    private static let numbers = [
        "serial", "first", "second", "parent.first", "parent.parent.serial", "children.@count",
    ]
    private static let comparisons = ["==", "!=", "<", "<=", ">", ">="]
    private static let texts = ["\"a\"", "'A'", "\"O'Brien\"", "\"\"", "\"%@\"", "\"*b?\"", "\"\\n\"", "\"ä\"", "nil"]
    private static let operators = ["==", "!=", "BEGINSWITH", "CONTAINS", "ENDSWITH", "LIKE", "<", ">="]

    /// A condition that nests no deeper than `depth`.
    static func condition(_ depth: Int, _ stream: inout SeededStream) -> String {
        switch stream.below(depth > 0 ? 10 : 6) {
        case 0, 1: return "\(number(depth, &stream)) \(stream.pick(comparisons)) \(number(depth, &stream))"
        case 2, 3:
            let flags = stream.pick(["", "[c]", "[cd]", "[d]"])
            let subject = stream.pick(["label", "parent.label"])
            return "\(subject) \(stream.pick(operators))\(flags) \(stream.pick(texts.dropLast()))"
        case 4:
            let list = (0...stream.below(3)).map { _ in "\(stream.below(9) - 3)" }.joined(separator: ", ")
            return "\(stream.pick(numbers)) IN {\(list)}"
        case 5:
            return stream.pick([
                "label == nil", "parent != nil", "TRUEPREDICATE", "FALSEPREDICATE",
                "serial BETWEEN {\(stream.below(20)), \(stream.below(40))}",
            ])
        case 6: return "NOT (\(condition(depth - 1, &stream)))"
        case 7:
            let relationship = stream.pick(["children", "marks"])
            let aggregate = stream.pick(["ANY", "ALL", "NONE"])
            return "\(aggregate) \(relationship).serial \(stream.pick(comparisons)) \(stream.below(30))"
        case 8:
            let inner = "$x.first \(stream.pick(comparisons)) \(number(0, &stream))"
            return "SUBQUERY(children, $x, \(inner)).@count \(stream.pick(comparisons)) \(stream.below(3))"
        default:
            let join = stream.pick(["AND", "OR"])
            return "(\(condition(depth - 1, &stream)) \(join) \(condition(depth - 1, &stream)))"
        }
    }

    private static func number(_ depth: Int, _ stream: inout SeededStream) -> String {
        switch stream.below(depth > 0 ? 5 : 3) {
        case 0: return "\(stream.below(40) - 5)"
        case 1, 2: return stream.pick(numbers)
        case 3: return "(\(number(depth - 1, &stream)) \(stream.pick(["+", "-", "*"])) \(stream.below(7)))"
        default: return "abs(\(stream.pick(["serial", "first"])))"
        }
    }
}
