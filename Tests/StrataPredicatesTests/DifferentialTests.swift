import Expectations
import StrataPredicates
import Testing

@Suite("Random predicates")
struct DifferentialTests {
    @Test(arguments: 1...10 as ClosedRange<UInt64>)
    func `an object and a resolved subject give the same answer`(_ seed: UInt64) throws {
        var generator = PredicateGenerator(seed: seed)
        let people = generator.people(12)
        var positive = 0

        for _ in 0..<400 {
            let predicate = generator.predicate(depth: 3)
            let resolved = try PredicateResolver.resolve(predicate, schema: ToySchema.person)
            var evaluator = ResolvedEvaluator(resolved, reader: ToyReader())
            for person in people {
                let plain = try predicate.evaluateOrThrow(with: person)
                let answer = try evaluator.evaluate(person)
                positive += plain ? 1 : 0
                guard plain != answer else { continue }
                Issue.record("\(plain) for the object, \(answer) when resolved: \(predicate.formatText)")
                return
            }
        }

        // A generator whose predicates nearly always say the same would test little.
        expect(positive > 1000 && positive < 4000)
    }

    @Test(arguments: 1...10 as ClosedRange<UInt64>)
    func `printing and parsing gives back an equal predicate`(_ seed: UInt64) throws {
        var generator = PredicateGenerator(seed: seed &* 7919)
        var checked = 0

        for _ in 0..<500 {
            let predicate = generator.predicate(depth: 3)
            let text = predicate.formatText
            // Objects have no text form.
            if text.contains("Toy") { continue }
            let parsed = try NSPredicate(validating: text)
            checked += 1
            if parsed.formatText != text || !predicatesAreEqual(parsed, predicate) || parsed.hash != hash(predicate) {
                Issue.record("\(text)\nbecomes\n\(parsed.formatText)")
                return
            }
        }

        expect(checked > 300)
    }

    private func hash(_ predicate: NSPredicate) -> Int {
        var hasher = Hasher()
        hashPredicate(predicate, into: &hasher)
        return hasher.finalize()
    }
}

/// Texts that are nearly predicates.
@Suite("Mutated text")
struct FuzzTests {
    private static let alphabet = Array("()[]{}<>=!&|*/+-^~.,:@#$%\"'\\ 019axANDORNOT\n".utf8) + [0, 0xC3, 0xE2, 0xFF]
    private static let words = [
        " AND ", " OR ", "NOT ", "ANY ", "ALL ", "NONE ", "SUBQUERY(", "TERNARY(", "CAST(", "FUNCTION(", " IN ",
        " BETWEEN ",
        " LIKE ", " MATCHES ", "[cd]", "[FIRST]", "$x", "%@", "%K", ".@count", ".@sum", "SELF", "nil", " UNION ", "{}",
        "**",
        "9223372036854775808", "-9223372036854775808", "1e400", "0x", "#AND", "sum:", "add:to:(", "now()",
        "TRUEPREDICATE",
    ].map { Array($0.utf8) }

    private var random: SeededGenerator
    private var generator: PredicateGenerator

    init() {
        random = SeededGenerator(seed: 0)
        generator = PredicateGenerator(seed: 0)
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `text that parses prints as text that parses to the same`(_ seed: UInt64) throws {
        var fuzz = self
        fuzz.random = SeededGenerator(seed: seed)
        fuzz.generator = PredicateGenerator(seed: seed &+ 1_000)
        var parsed = 0

        for _ in 0..<2_500 {
            let text = fuzz.text()
            guard let predicate = try? NSPredicate(validating: text, arguments: []) else { continue }
            parsed += 1
            _ = try? PredicateResolver.resolve(predicate, schema: ToySchema.person)
            _ = predicate.evaluate(with: ["a": 1, "name": "b"])
            let printed = predicate.formatText
            guard let again = try? NSPredicate(validating: printed), predicatesAreEqual(again, predicate),
                again.formatText == printed
            else {
                Issue.record("seed \(seed): \(text)\nprints as\n\(printed)")
                return
            }
        }

        // Nothing would be tested if all of it parsed, or nothing.
        expect(parsed > 250 && parsed < 2_250)
    }

    private mutating func text() -> String {
        var bytes = Array(generator.predicate(depth: 2).formatText.utf8)
        for _ in 0..<Int.random(in: 0...4, using: &random) {
            let place = Int.random(in: 0..<max(1, bytes.count), using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0 where !bytes.isEmpty: bytes[place] = Self.alphabet.randomElement(using: &random) ?? 0
            case 1: bytes.insert(Self.alphabet.randomElement(using: &random) ?? 0, at: min(place, bytes.count))
            case 2: bytes.removeSubrange(min(place, bytes.count)..<min(place + 5, bytes.count))
            case 3:
                bytes.insert(contentsOf: Self.words.randomElement(using: &random) ?? [], at: min(place, bytes.count))
            case 4:
                // A piece again and again.
                let piece = bytes[min(place, bytes.count)..<min(place + 8, bytes.count)]
                let copies = Array(repeating: piece, count: Int.random(in: 1...200, using: &random)).joined()
                bytes.insert(contentsOf: copies, at: min(place, bytes.count))
            default:
                let other = Array(generator.predicate(depth: 0).formatText.utf8)
                bytes.replaceSubrange(min(place, bytes.count)..<min(place + other.count / 2, bytes.count), with: other)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
