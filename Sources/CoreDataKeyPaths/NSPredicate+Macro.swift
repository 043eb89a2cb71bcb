import CoreDataEssentials
import StrataPredicates

extension FormatPredicateFactory where Self: NSPredicate {
    /// The `NSPredicate` with the meaning of a Swift predicate; `nil` if there is none.
    ///
    /// ```swift
    /// guard let cheap = NSPredicate(#Predicate<Venue> { $0.price < 20 && $0.city?.name == "Lisbon" }) else { return }
    /// request.predicate = cheap
    /// ```
    ///
    /// Prefer ``init(translating:)``, which throws an error for a predicate that cannot be translated. If the predicate
    /// of a request is nil, then the request filters nothing: a fetch finds all objects, and a batch request changes or
    /// deletes all. If you use this form, then check the result before you put it into a request.
    ///
    /// - Parameter predicate: A predicate that `#Predicate` has made.
    public init?<Root: NSManagedObject>(_ predicate: Predicate<Root>) {
        guard let translated = try? PredicateTranslator.predicate(predicate) else { return nil }
        // The translator makes predicates of NSPredicate's class hierarchy, and the initialiser is called on
        // NSPredicate itself.
        self = translated as! Self
    }

    /// The `NSPredicate` with the meaning of a Swift predicate.
    ///
    /// Everything that `#Predicate` supports is translated, except casts to subclasses, properties of values
    /// (`name.utf8`), members of a dictionary, and the filtering of the program's collections by an object's values.
    /// Values of the program are captured now. Optional chaining, `??` and `if let` keep their meaning; a forced
    /// unwrapping of nil, which throws in Swift, gives null.
    ///
    /// - Parameter predicate: A predicate that `#Predicate` has made.
    /// - Throws: ``PredicateTranslationError``, which names the part that has no counterpart.
    public init<Root: NSManagedObject>(translating predicate: Predicate<Root>) throws {
        // The cast is safe for the reason above.
        self = try PredicateTranslator.predicate(predicate) as! Self
    }
}

extension NSExpression {
    /// The `NSExpression` with the meaning of a Swift expression; `nil` if there is none.
    ///
    /// ```swift
    /// let count = NSExpression(#Expression<City, Int> { $0.venues.count })
    /// ```
    ///
    /// Use ``init(translating:)`` to get the reason as an error.
    ///
    /// - Parameter expression: An expression that `#Expression` has made.
    public convenience init?<Root: NSManagedObject, Value>(_ expression: Expression<Root, Value>) {
        guard let translated = try? PredicateTranslator.expression(expression) else { return nil }
        self.init(kind: translated.kind)
    }

    /// The `NSExpression` with the meaning of a Swift expression.
    ///
    /// - Parameter expression: An expression that `#Expression` has made.
    /// - Throws: ``PredicateTranslationError``, which names the part that has no counterpart.
    public convenience init<Root: NSManagedObject, Value>(translating expression: Expression<Root, Value>) throws {
        self.init(kind: try PredicateTranslator.expression(expression).kind)
    }
}
