/// The types that `CAST` knows, by the class names of the format language.
package enum CastTarget: String, CaseIterable, Hashable, Sendable {
    case date = "NSDate"
    case number = "NSNumber"
    case decimal = "NSDecimalNumber"
    case string = "NSString"
    case uuid = "NSUUID"
    case url = "NSURL"
    case data = "NSData"

    /// The value as this type; nil if it has no such form.
    package func apply(_ value: PredicateValue) -> PredicateValue {
        switch (self, value) {
        case (.date, .date), (.number, .int), (.number, .double), (.decimal, .int), (.decimal, .double),
            (.string, .string),
            (.uuid, .uuid), (.url, .string), (.data, .data):
            value
        case (.date, _): number(from: value).doubleValue.map { .date($0) } ?? .null
        case (.number, _), (.decimal, _): number(from: value)
        case (.string, _): value.text.map { .string($0) } ?? .null
        case (.uuid, .string(let text)): UUID(uuidString: text).map { .uuid($0) } ?? .null
        case (.data, .string(let text)): Data(base64Encoded: text).map { .data($0) } ?? .null
        default: .null
        }
    }

    private func number(from value: PredicateValue) -> PredicateValue {
        switch value {
        case .int, .double: value
        case .date(let seconds): .number(seconds)
        case .string(let text): Int64(text).map { .int($0) } ?? Double(text).map { .number($0) } ?? .null
        default: .null
        }
    }

    /// The object that a literal in a text means; `nil` if the cast makes no constant.
    func constant(from literal: Any) -> Any? {
        switch (self, PredicateValue(scalar: literal)) {
        case (.decimal, .string(let text)?): Decimal(string: text, locale: Locale(identifier: "en_US_POSIX"))
        case (.number, .string(let text)?): Double(text).map { NSNumber(value: $0) }
        case (.url, .string(let text)?): URL(string: text)
        case (.date, let value?): value.doubleValue.map { Date(timeIntervalSinceReferenceDate: $0) }
        case (.uuid, .string(let text)?): UUID(uuidString: text)
        case (.data, .string(let text)?): Data(base64Encoded: text)
        default: nil
        }
    }
}

extension PredicateValue {
    /// The value as text, if every back end can make the same text.
    fileprivate var text: String? {
        switch self {
        case .string(let value): value
        case .int(let value): String(value)
        case .double(let value): value.isNaN ? nil : String(value)
        case .uuid(let value): value.uuidString
        default: nil
        }
    }
}
