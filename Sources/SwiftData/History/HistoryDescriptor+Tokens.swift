import Foundation

extension HistoryDescriptor {
    /// The places in histories with which the predicate compares.
    var tokens: [DefaultHistoryToken] {
        var found: [DefaultHistoryToken] = []
        if let predicate { Self.collect(predicate.expression, &found) }
        return found
    }

    private static func collect<Part: PredicateExpression>(_ part: Part, _ found: inout [DefaultHistoryToken]) {
        // A part that needs no transaction has its value before any is there.
        if Part.Output.self == DefaultHistoryToken.self || Part.Output.self == DefaultHistoryToken?.self,
            let value = try? part.evaluate(PredicateBindings())
        {
            if let token = value as? DefaultHistoryToken { found.append(token) }
            return
        }
        for child in Mirror(reflecting: part).children {
            if let child = child.value as? any PredicateExpression { collect(child, &found) }
        }
    }
}
