import Foundation

/// How the values of a store's options are understood.
package enum StoreOption {
    /// Whether an option is switched on: by a truth value, a number other than 0, or a text such as "YES".
    package static func flag(_ value: Any?) -> Bool {
        (value as? Bool) ?? (value as? NSNumber)?.boolValue
            ?? ((value as? String).map { ["YES", "true", "1"].contains($0) } ?? false)
    }

    /// A number, or a text that is one; `nil` for anything else.
    package static func number(_ value: Any?) -> Double? {
        (value as? Double) ?? (value as? Int).map(Double.init) ?? (value as? NSNumber)?.doubleValue
            ?? (value as? String).flatMap(Double.init)
    }

    /// The seconds for which a user of the store waits for others; Apple's 240 unless the options say otherwise.
    package static func timeout(_ options: [AnyHashable: Any]?) -> Double {
        seconds(options?[NSPersistentStoreTimeoutOption]) ?? 240
    }

    /// A time that is not negative, in seconds; `nil` for anything else.
    ///
    /// One that is too long for a duration, such as infinity, is a thousand million seconds.
    package static func seconds(_ value: Any?) -> Double? {
        number(value).flatMap { $0 >= 0 ? min($0, 1e9) : nil }
    }

    /// Whether changes are to be recorded.
    package static func tracksHistory(_ options: [AnyHashable: Any]) -> Bool {
        let value = options[NSPersistentHistoryTrackingKey]
        // A dictionary is how Apple's framework takes details.
        return flag(value) || value is [AnyHashable: Any] || value is NSDictionary
    }
}
