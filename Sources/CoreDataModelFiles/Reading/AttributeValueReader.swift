import CoreDataEssentials
import StrataModelFiles
import StrataPredicates
import StrataRows

/// Reads an attribute's default value and limits, which are texts in the XML.
struct AttributeValueReader {
    let type: NSAttributeDescription.AttributeType
    let place: Place

    /// One validation predicate, and the code of the error if a value does not fulfil it.
    struct Rule {
        let predicate: NSPredicate
        let code: Any
    }

    // MARK: - Default value

    /// The default value, with the same class as in Apple's framework: numbers are `NSNumber`.
    func defaultValue(from element: AttributeSource) throws(ModelError) -> Any? {
        if type == .date, let text = element.text("defaultDateTimeInterval") {
            return try date(text, "defaultDateTimeInterval")
        }
        // An empty text is a default value only for strings.
        guard let text = type == .string ? element["defaultValueString"] : element.text("defaultValueString") else {
            return nil
        }
        switch type {
        case .undefined, .transformable, .objectID, .composite: return nil
        case .string: return text
        case .date: return try date(text, "defaultValueString")
        case .binaryData:
            guard let data = Data(base64Encoded: text) else {
                throw failure(in: "defaultValueString", text, isNot: "Base64")
            }
            return data
        case .uuid:
            guard let uuid = UUID(uuidString: text) else {
                throw failure(in: "defaultValueString", text, isNot: "a UUID")
            }
            return uuid
        case .uri:
            guard let url = URL(string: text) else { throw failure(in: "defaultValueString", text, isNot: "a URI") }
            return url
        default: return try number(text, "defaultValueString")
        }
    }

    // MARK: - Limits

    /// The limits of the value as predicates on `SELF`, with the codes of their errors.
    func validationRules(from element: AttributeSource) throws(ModelError) -> [Rule] {
        switch type {
        case .string: try textRules(from: element)
        case .date: try dateRules(from: element)
        case .integer16, .integer32, .integer64, .decimal, .double, .float: try numberRules(from: element)
        default: []
        }
    }

    private func numberRules(from element: AttributeSource) throws(ModelError) -> [Rule] {
        var rules: [Rule] = []
        if let text = element.text("minValueString") {
            let least = try number(text, "minValueString")
            rules.append(
                Rule(predicate: NSPredicate(format: "SELF >= %@", least), code: NSValidationNumberTooSmallError)
            )
        }
        if let text = element.text("maxValueString") {
            let most = try number(text, "maxValueString")
            rules.append(
                Rule(predicate: NSPredicate(format: "SELF <= %@", most), code: NSValidationNumberTooLargeError)
            )
        }
        return rules
    }

    private func dateRules(from element: AttributeSource) throws(ModelError) -> [Rule] {
        var rules: [Rule] = []
        if let text = element.text("minDateTimeInterval") {
            let first = try date(text, "minDateTimeInterval")
            rules.append(Rule(predicate: NSPredicate(format: "SELF >= %@", first), code: NSValidationDateTooSoonError))
        }
        if let text = element.text("maxDateTimeInterval") {
            let last = try date(text, "maxDateTimeInterval")
            rules.append(Rule(predicate: NSPredicate(format: "SELF <= %@", last), code: NSValidationDateTooLateError))
        }
        return rules
    }

    private func textRules(from element: AttributeSource) throws(ModelError) -> [Rule] {
        var rules: [Rule] = []
        func length(_ attribute: String) throws(ModelError) -> Int? {
            guard let text = element.text(attribute) else { return nil }
            guard let value = Int(text), value >= 0 else { throw failure(in: attribute, text, isNot: "a length") }
            return value
        }
        if let least = try length("minValueString") {
            rules.append(
                Rule(predicate: NSPredicate(format: "length >= %@", least), code: NSValidationStringTooShortError)
            )
        }
        if let most = try length("maxValueString") {
            rules.append(
                Rule(predicate: NSPredicate(format: "length <= %@", most), code: NSValidationStringTooLongError)
            )
        }
        if let pattern = element.text("regularExpressionString") {
            guard (try? NSRegularExpression(pattern: pattern)) != nil else {
                throw failure(in: "regularExpressionString", pattern, isNot: "a regular expression")
            }
            rules.append(
                Rule(
                    predicate: NSPredicate(format: "SELF MATCHES %@", pattern),
                    code: NSValidationStringPatternMatchingError
                )
            )
        }
        return rules
    }

    // MARK: - Values

    private func number(_ text: String, _ attribute: String) throws(ModelError) -> NSNumber {
        // Xcode has written YES and NO for numbers too, if the type was changed later.
        let text =
            ["YES", "TRUE"].contains(text.uppercased())
            ? "1" : ["NO", "FALSE"].contains(text.uppercased()) ? "0" : text
        let value: NSNumber? =
            switch type {
            case .boolean: Int(text).map { NSNumber(value: $0 != 0) }
            case .integer16: integer(text).map { NSNumber(value: $0 as Int16) }
            case .integer32: integer(text).map { NSNumber(value: $0 as Int32) }
            case .integer64: integer(text).map { NSNumber(value: $0 as Int64) }
            case .float: Float(text).map { NSNumber(value: $0) }
            case .decimal: Decimal(string: text).map { NSDecimalNumber(decimal: $0) }
            default: Double(text).map { NSNumber(value: $0) }
            }
        guard let value else { throw failure(in: attribute, text, isNot: "a number of the attribute's type") }
        return value
    }

    /// An integer, even if it is written with a fraction of zero (`0.0`).
    private func integer<Integer: FixedWidthInteger>(_ text: String) -> Integer? {
        Integer(text) ?? Double(text).flatMap { Integer(exactly: $0) }
    }

    private func date(_ text: String, _ attribute: String) throws(ModelError) -> Date {
        guard let seconds = Double(text), seconds.isFinite else {
            throw failure(in: attribute, text, isNot: "a number of seconds since 2001")
        }
        return Date(timeIntervalSinceReferenceDate: seconds)
    }

    private func failure(in attribute: String, _ text: String, isNot expected: String) -> ModelError {
        place.failure("\(attribute) is not \(expected): \"\(text)\"")
    }
}
