import Foundation

/// Reads the values of a store's options.
package enum StoreOption {
    /// Whether an option is switched on: by a Boolean, a number other than 0, or a text such as "YES".
    package static func flag(_ value: Any?) -> Bool {
        (value as? Bool) ?? (value as? NSNumber)?.boolValue
            ?? ((value as? String).map { ["YES", "true", "1"].contains($0) } ?? false)
    }

    /// A number, or a text that is one; `nil` for any other value.
    package static func number(_ value: Any?) -> Double? {
        (value as? Double) ?? (value as? Int).map(Double.init) ?? (value as? NSNumber)?.doubleValue
            ?? (value as? String).flatMap(Double.init)
    }

    /// The number of seconds that a call waits for others; Apple's 240 unless the options have another value.
    package static func timeout(_ options: [AnyHashable: Any]?) -> Double {
        seconds(options?[NSPersistentStoreTimeoutOption]) ?? 240
    }

    /// A time that is not negative, in seconds; `nil` for any other value.
    ///
    /// A time that is too long for a duration, such as infinity, becomes a thousand million seconds.
    package static func seconds(_ value: Any?) -> Double? {
        number(value).flatMap { $0 >= 0 ? min($0, 1e9) : nil }
    }

    /// Whether changes shall be recorded.
    package static func tracksHistory(_ options: [AnyHashable: Any]) -> Bool {
        let value = options[NSPersistentHistoryTrackingKey]
        // Apple's framework takes details as a dictionary.
        return flag(value) || value is [AnyHashable: Any] || value is NSDictionary
    }
}
