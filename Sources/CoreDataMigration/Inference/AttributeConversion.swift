import CoreDataEssentials

/// The conversions between attribute types that need no mapping model.
enum AttributeConversion {
    /// Whether every value of one type can be converted to the other type.
    ///
    /// Integers become wider integers, or floating-point numbers; Booleans become integers; a `Float` becomes a
    /// `Double`. An integer beyond 2⁵³ becomes the nearest `Double`, one beyond 2²⁴ the nearest `Float`.
    static func isInferable(_ source: NSAttributeType, _ destination: NSAttributeType) -> Bool {
        if source == destination { return true }
        switch (source, destination) {
        case (.booleanAttributeType, .integer16AttributeType), (.booleanAttributeType, .integer32AttributeType),
            (.booleanAttributeType, .integer64AttributeType):
            return true
        case (.integer16AttributeType, .integer32AttributeType), (.integer16AttributeType, .integer64AttributeType),
            (.integer32AttributeType, .integer64AttributeType):
            return true
        case (.integer16AttributeType, .doubleAttributeType), (.integer32AttributeType, .doubleAttributeType),
            (.integer64AttributeType, .doubleAttributeType), (.integer16AttributeType, .floatAttributeType),
            (.integer32AttributeType, .floatAttributeType), (.integer64AttributeType, .floatAttributeType),
            (.integer16AttributeType, .decimalAttributeType), (.integer32AttributeType, .decimalAttributeType),
            (.integer64AttributeType, .decimalAttributeType):
            return true
        case (.floatAttributeType, .doubleAttributeType): return true
        default: return false
        }
    }
}
