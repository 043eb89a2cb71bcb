/// The values that recording objects return.
///
/// If a property computes its value from another property, then it returns a different value than it read for at least
/// one of the sets. So it is detected.
enum Samples {
    /// Unusual values, which code is unlikely to make up.
    case distinct
    /// Zero, and empty values.
    case zero
    /// nil for an optional property, otherwise zero.
    case none

    /// A value of a scalar type; `nil` for a type that has no sample.
    func value(of type: Any.Type) -> Any? {
        switch type {
        case is Int16.Type: pick(-30_523, 0) as Int16
        case is Int32.Type: pick(-2_099_846_771, 0) as Int32
        case is Int64.Type: pick(-8_646_911_284_551_352_321, 0) as Int64
        case is Int.Type: pick(-8_646_911_284_551_352_321, 0) as Int
        case is Double.Type: pick(-8.637_123_5e130, 0) as Double
        case is Float.Type: pick(-8.637e30, 0) as Float
        case is Bool.Type: pick(true, false)
        case is String.Type: pick("  Ǆ key PATH ſample\u{301}\n", "")
        case is Decimal.Type: pick(Decimal(-8_637_123) / 1000, 0) as Decimal
        case is Date.Type: Date(timeIntervalSinceReferenceDate: pick(-8_637_123_456.25, 0))
        case is Data.Type: pick(Data("key path sample".utf8), Data())
        case is UUID.Type: UUID(uuid: (pick(0xA7, 0), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
        case is URL.Type: URL(fileURLWithPath: pick("/key/path.sample", "/"))
        default: nil
        }
    }

    private func pick<Value>(_ distinct: Value, _ zero: Value) -> Value {
        self == .distinct ? distinct : zero
    }

    /// The raw value of one of the cases of an enumeration.
    func rawValue(of type: any RawRepresentable.Type) -> Any? {
        func raw<Value: RawRepresentable>(_ type: Value.Type) -> Any? {
            for samples in [self, .zero] {
                if let raw = samples.value(of: Value.RawValue.self) as? Value.RawValue, Value(rawValue: raw) != nil {
                    return raw
                }
            }
            if let iterable = type as? any CaseIterable.Type { return Self.firstRawValue(iterable) }
            return nil
        }
        return raw(type)
    }

    private static func firstRawValue<Value: CaseIterable>(_ type: Value.Type) -> Any? {
        (Value.allCases.first as? any RawRepresentable)?.rawValue
    }
}
