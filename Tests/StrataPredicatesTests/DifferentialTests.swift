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
        #expect(positive > 1000 && positive < 4000)
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

        #expect(checked > 300)
    }

    private func hash(_ predicate: NSPredicate) -> Int {
        var hasher = Hasher()
        hashPredicate(predicate, into: &hasher)
        return hasher.finalize()
    }

    @Test func `mutated text never does worse than an error`() {
        var generator = PredicateGenerator(seed: 99)
        var random = SeededGenerator(seed: 100)
        let alphabet = Array("()[]{}<>=!&|*/+-^~.,:@#$%\"'\\ 019axANDORNOT".utf8) + [0, 0xC3, 0xFF]
        var parsed = 0

        for _ in 0..<10_000 {
            var bytes = Array(generator.predicate(depth: 2).formatText.utf8)
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[place] = alphabet.randomElement(using: &random) ?? 0
                case 1: bytes.insert(alphabet.randomElement(using: &random) ?? 0, at: place)
                default: bytes.removeSubrange(place..<min(place + 5, bytes.count - 1))
                }
            }
            if let predicate = try? NSPredicate(validating: String(decoding: bytes, as: UTF8.self)) {
                parsed += 1
                _ = try? PredicateResolver.resolve(predicate, schema: ToySchema.person)
            }
        }

        #expect(parsed > 1000 && parsed < 9000)
    }
}
