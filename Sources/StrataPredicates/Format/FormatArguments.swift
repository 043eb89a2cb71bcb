import Foundation

#if !canImport(Darwin)
// Code for Apple's platforms writes `NSPredicate(format: "id == %@", id as CVarArg)` to pass values that are objects
// there. The formats of this module take any value; these conformances let such code compile. If a value is passed to a
// format of the C library (`String(format:)`), its description is printed.

extension UUID: @retroactive CVarArg, @retroactive _CVarArgObject {
    /// The description, as Foundation passes text.
    public var _cVarArgObject: any CVarArg { NSString(string: uuidString) }
    /// The description as an object.
    public var _cVarArgEncoding: [Int] { encodedForC(uuidString) }
}

extension Date: @retroactive CVarArg, @retroactive _CVarArgObject {
    /// The description, as Foundation passes text.
    public var _cVarArgObject: any CVarArg { NSString(string: description) }
    /// The description as an object.
    public var _cVarArgEncoding: [Int] { encodedForC(description) }
}

extension Data: @retroactive CVarArg, @retroactive _CVarArgObject {
    /// The description, as Foundation passes text.
    public var _cVarArgObject: any CVarArg { NSString(string: description) }
    /// The description as an object.
    public var _cVarArgEncoding: [Int] { encodedForC(description) }
}

extension URL: @retroactive CVarArg, @retroactive _CVarArgObject {
    /// The description, as Foundation passes text.
    public var _cVarArgObject: any CVarArg { NSString(string: description) }
    /// The description as an object.
    public var _cVarArgEncoding: [Int] { encodedForC(description) }
}

extension Decimal: @retroactive CVarArg, @retroactive _CVarArgObject {
    /// The description, as Foundation passes text.
    public var _cVarArgObject: any CVarArg { NSString(string: description) }
    /// The description as an object.
    public var _cVarArgEncoding: [Int] { encodedForC(description) }
}

extension Set: @retroactive CVarArg, @retroactive _CVarArgObject {
    /// The description, as Foundation passes text.
    public var _cVarArgObject: any CVarArg { NSString(string: description) }
    /// The description as an object.
    public var _cVarArgEncoding: [Int] { encodedForC(description) }
}

extension Array: @retroactive CVarArg, @retroactive _CVarArgObject {
    /// The description, as Foundation passes text.
    public var _cVarArgObject: any CVarArg { NSString(string: description) }
    /// The description as an object.
    public var _cVarArgEncoding: [Int] { encodedForC(description) }
}

extension NSNumber: @retroactive CVarArg, @retroactive _CVarArgObject {
    /// The description, as Foundation passes text.
    public var _cVarArgObject: any CVarArg { NSString(string: description) }
    /// The description as an object.
    public var _cVarArgEncoding: [Int] { encodedForC(description) }
}

extension NSDate: @retroactive CVarArg, @retroactive _CVarArgObject {
    /// The description, as Foundation passes text.
    public var _cVarArgObject: any CVarArg { NSString(string: description) }
    /// The description as an object.
    public var _cVarArgEncoding: [Int] { encodedForC(description) }
}

extension NSUUID: @retroactive CVarArg, @retroactive _CVarArgObject {
    /// The description, as Foundation passes text.
    public var _cVarArgObject: any CVarArg { NSString(string: uuidString) }
    /// The description as an object.
    public var _cVarArgEncoding: [Int] { encodedForC(uuidString) }
}

extension NSSet: @retroactive CVarArg, @retroactive _CVarArgObject {
    /// The description, as Foundation passes text.
    public var _cVarArgObject: any CVarArg { NSString(string: description) }
    /// The description as an object.
    public var _cVarArgEncoding: [Int] { encodedForC(description) }
}

extension NSArray: @retroactive CVarArg, @retroactive _CVarArgObject {
    /// The description, as Foundation passes text.
    public var _cVarArgObject: any CVarArg { NSString(string: description) }
    /// The description as an object.
    public var _cVarArgEncoding: [Int] { encodedForC(description) }
}

/// A text as an object for a variadic function of C.
///
/// The object is never released: such a function does not report when it is done, and Linux has no pool that would
/// release the object later.
private func encodedForC(_ text: String) -> [Int] {
    [Int(bitPattern: Unmanaged.passRetained(NSString(string: text)).toOpaque())]
}
#endif
