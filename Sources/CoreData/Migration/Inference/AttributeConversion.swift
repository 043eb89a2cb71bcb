/// Which types of attributes turn into which others without anybody's help.
enum AttributeConversion {
    /// Whether every value of one type has an equal of the other.
    ///
    /// Whole numbers become wider ones, and numbers with a fraction; truth values become whole numbers; a `Float` becomes a `Double`.
    /// A whole number beyond 2⁵³ becomes the nearest `Double`, one beyond 2²⁴ the nearest `Float`.
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
